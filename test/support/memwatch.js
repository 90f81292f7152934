'use strict'

const path = require('node:path')
const { execFile } = require('node:child_process')
const { environment } = require('./agent-collector')

const MEMWATCH = path.join(__dirname, '../../cli/memwatch.js')

/**
 * Runs the CLI to its end.
 * @param {string[]} args
 * @returns {Promise<{ code: number, stdout: string, stderr: string }>}
 */
const memwatch = args => new Promise(resolve => {
  execFile(process.execPath, [MEMWATCH, ...args], { env: environment() }, (error, stdout, stderr) =>
    resolve({ code: Number(error?.code ?? 0), stdout, stderr })
  )
})

module.exports = { memwatch, MEMWATCH }
