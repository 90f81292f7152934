'use strict'

const { triggers } = require('./automatic')

/** Which diagnosis a kind of capture says more about. @type {Record<string, string>} */
const diagnosisOf = Object.fromEntries(Object.entries(triggers).map(([diagnosis, { kind }]) => [kind, diagnosis]))

/**
 * What the last capture for a diagnosis points at.
 * @typedef {object} AttachedSuspects
 * @property {string} captureId
 * @property {import('./kinds').KindName} kind
 * @property {number} atUnixMs
 * @property {import('./suspects').Suspects} suspects
 */

/**
 * Put what a capture points at beside the verdict that it is about, whether it was made for it or asked for.
 * @param {Pick<import('../series/target').Target, 'suspects'>} target @param {import('./captures').Capture} capture
 */
function attach (target, { id, kind, requestedUnixMs, suspects }) {
  const diagnosis = diagnosisOf[kind]
  if (suspects && suspects.sites.length > 0 && diagnosis) target.suspects.set(diagnosis, { captureId: id, kind, atUnixMs: requestedUnixMs, suspects })
}

/**
 * What was captured of a target before this exporter was started.
 * @param {import('../series/target').Target} target @param {import('./captures').Capture[]} captures newest first
 */
function attachEarlier (target, captures) {
  const { hello, thread } = target
  for (const capture of captures.slice().reverse()) {
    const isSame = capture.pid === hello.pid && capture.host === (hello.host ?? null) && capture.startedAtUnixMs === hello.startedAtUnixMs && capture.thread === thread
    if (isSame) attach(target, capture)
  }
}

module.exports = { attach, attachEarlier }
