'use strict'

const { findCase } = require('@memwatch/engine/verdicts/case')
const { triggers } = require('./automatic')

/** Which diagnosis a kind of capture says more about. @type {Record<string, string>} */
const diagnosisOf = Object.fromEntries(
  Object.entries(triggers).reverse().map(([diagnosis, { kind }]) => [kind, diagnosis])
)

/**
 * Put what a capture points at beside the verdict that it is about, whether it was made for it or
 * asked for.
 * @param {import('@memwatch/engine/history/target').Target} target
 * @param {import('./captures').Capture} capture
 */
function attach (target, { id, kind, requestedUnixMs, suspects, diagnosis: trigger }) {
  const diagnosis = trigger ?? diagnosisOf[kind]
  if (!suspects || suspects.sites.length === 0 || !diagnosis) return
  const attached = { captureId: id, kind, atUnixMs: requestedUnixMs, suspects }
  findCase(target).suspects.set(diagnosis, attached)
}

/**
 * What was captured of a target before this exporter was started.
 * @param {import('@memwatch/engine/history/target').Target} target
 * @param {import('./captures').Capture[]} captures newest first
 */
function attachEarlier (target, captures) {
  const { hello, thread } = target
  for (const capture of captures.slice().reverse()) {
    const isSame =
      capture.pid === hello.pid &&
      capture.host === (hello.host ?? null) &&
      capture.startedAtUnixMs === hello.startedAtUnixMs &&
      capture.thread === thread
    if (isSame) attach(target, capture)
  }
}

module.exports = { attach, attachEarlier }
