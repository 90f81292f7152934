'use strict'

const { execFile } = require('node:child_process')

/**
 * Input and output that no fake timer moves: another process, which takes 1.2 seconds.
 * @returns {Promise<void>}
 */
const realWork = () => new Promise((resolve, reject) => {
  execFile('sleep', ['1.2'], error => error ? reject(error) : resolve())
})

module.exports = { realWork }
