'use strict'

const { judge } = require('@memwatch/engine/verdicts/judge')
const { STATE_RANK } = require('@memwatch/engine/diagnoses/define-diagnosis')
const { signalsOf } = require('@memwatch/engine/signals/index')

/**
 * Judges a source with an unknown value, such as the heap limit in a GC log, at both bounds of the
 * value. A finding at both bounds is confirmed, a finding at one bound is at most suspected.
 *
 * @typedef {object} End
 * @property {Partial<Record<import('./define-source').FieldName, any>>} values fields of a frame
 * @property {number} [semiSpaceMaxBytes]
 * @property {string} [assumed] sentence with the unknown value, and the assumption
 * @typedef {object} Bounds
 * @property {End} least
 * @property {End} most
 */

/**
 * Wraps a diagnosis so that its own rules judge at both bounds.
 * @param {import('@memwatch/engine/diagnoses/define-diagnosis').Diagnosis} diagnosis
 * @param {() => Bounds | undefined} boundsOf returns the bounds at this moment; undefined if no
 *   value is unknown
 * @returns {import('@memwatch/engine/diagnoses/define-diagnosis').Diagnosis}
 */
function atBothEnds (diagnosis, boundsOf) {
  return {
    ...diagnosis,
    // The required signals depend on the bound, so they are checked at each bound.
    requires: [],
    judge (signals, limits, target) {
      const bounds = boundsOf()
      /** @type {(import('@memwatch/engine/diagnoses/define-diagnosis').Judgement & { assumed?: string })[]} */
      const [one, other] = (bounds ? [bounds.least, bounds.most] : [NOTHING_OPEN]).map(end => {
        const at = assuming(end, signals, target)
        const { judgement } = judge(diagnosis, at.signals, at.hello)
        return judgement.state === 'suspected' || judgement.state === 'confirmed'
          ? { ...judgement, assumed: end.assumed }
          : judgement
      })
      // If the results at both bounds are equal, they do not depend on the unknown value.
      if (!other || (one.state === other.state && one.summary === other.summary)) return one
      const isStronger = STATE_RANK[one.state] > STATE_RANK[other.state]
      const [weaker, stronger] = isStronger ? [other, one] : [one, other]
      // A diagnosis is ruled out only if it is ruled out at both bounds.
      if (STATE_RANK[stronger.state] <= STATE_RANK.ok) return weaker
      const state = weaker.state === 'confirmed' ? 'confirmed' : 'suspected'
      // The text is that of the stronger result, or of the upper bound if both states are equal.
      return {
        ...stronger,
        state,
        summary: stronger.assumed ? `${stronger.summary} ${stronger.assumed}` : stronger.summary
      }
    }
  }
}

/** @type {End} */
const NOTHING_OPEN = { values: {} }

/**
 * @param {End} end
 * @param {any} signals signals of the moment
 * @param {import('@memwatch/agent/protocol/frame').Hello} target
 * @returns {{ signals: import('@memwatch/engine/signals/index').Signals, hello: import('@memwatch/agent/protocol/frame').Hello }}
 */
function assuming ({ values, semiSpaceMaxBytes }, signals, target) {
  const hello = semiSpaceMaxBytes === undefined ? target : { ...target, semiSpaceMaxBytes }
  return { signals: signalsOf(signals.window.assuming({ values, hello })), hello }
}

module.exports = { atBothEnds }
