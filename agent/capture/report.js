'use strict'

const { stringifyJson } = require('../primordials')
const { plainFlags } = require('../protocol/node-options')
const { scriptPath } = require('../identity')
const { CaptureError, textChunks } = require('./parts')

/** A stack names a module from a data: URL by its source: `at data:text/javascript,...:1:2`. */
const DATA_URL = /\bdata:.*/gi
/**
 * Object file of a native frame: `node::Start(...) [node]`. Node.js reads its own name from the
 * memory of its arguments, which may hold the title of the process.
 */
const OBJECT_FILE = / \[.*/s

/**
 * Node.js's diagnostic report of all threads, without possible secrets: environment, arguments of
 * the app, and code given as an argument.
 * @type {import('./index').Capture}
 */
async function * report () {
  const { report } = process
  if (!report) throw new CaptureError('not_supported', 'this Node makes no diagnostic reports')
  // The report would look up the names of all peers and block the app until the answers arrive.
  const { excludeNetwork } = /** @type {any} */ (report)
  Object.assign(report, { excludeNetwork: true })
  let found
  try {
    found = /** @type {any} */ (report.getReport())
  } finally {
    Object.assign(report, { excludeNetwork })
  }
  yield { part: 'report', chunks: textChunks(stringifyJson(found, withoutSecrets)) }
}

/**
 * Replacer of JSON.stringify.
 * @param {string} key
 * @param {unknown} value
 */
function withoutSecrets (key, value) {
  if (key === 'environmentVariables') return undefined
  if (key === 'commandLine') return commandLine()
  if (typeof value !== 'string') return value
  return value.replace(key === 'symbol' ? OBJECT_FILE : DATA_URL, '')
}

/** Node.js, its flags as in the hello, and the script. @returns {string[]} */
function commandLine () {
  const script = scriptPath()
  const words = [process.execPath, ...plainFlags(process.execArgv)]
  return script === undefined ? words : [...words, script]
}

module.exports = { report }
