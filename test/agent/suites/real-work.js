'use strict'

const { execFile } = require('node:child_process')

/**
 * Work that does not depend on fake timers: another process, which takes 1.2 seconds.
 * @returns {Promise<void>}
 */
const realWork = () => new Promise((resolve, reject) => {
  execFile('sleep', ['1.2'], error => error ? reject(error) : resolve())
})

module.exports = { realWork }
