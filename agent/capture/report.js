'use strict'

const { stringifyJson } = require('../primordials')
const { CaptureError, textChunks } = require('./index')

/** Node's diagnostic report, without the environment: that holds secrets. @type {import('./index').Capture} */
async function * report () {
  const { report } = process
  if (!report) throw new CaptureError('not_supported', 'this Node makes no diagnostic reports')
  // Otherwise the names of all peers are looked up, and the app waits for the answers.
  const { excludeNetwork } = /** @type {any} */ (report)
  Object.assign(report, { excludeNetwork: true })
  let found
  try {
    found = /** @type {any} */ (report.getReport())
  } finally {
    Object.assign(report, { excludeNetwork })
  }
  delete found.environmentVariables
  yield { part: 'report', chunks: textChunks(stringifyJson(found)) }
}

module.exports = { report }
