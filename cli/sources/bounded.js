'use strict'

const { judge } = require('@memwatch/engine/verdicts/judge')
const { STATE_RANK } = require('@memwatch/engine/diagnoses/define-diagnosis')
const { signalsOf } = require('@memwatch/engine/signals/index')

/**
 * An unknown value of a source, such as the heap limit in a GC log, is judged at both of its
 * bounds: a finding at both is confirmed, a finding at one is at most suspected.
 *
 * @typedef {object} End
 * @property {Partial<Record<import('./define-source').FieldName, any>>} values of a frame
 * @property {number} [semiSpaceMaxBytes]
 * @property {string} [assumed] sentence: the unknown value, and the assumption
 * @typedef {object} Bounds
 * @property {End} least
 * @property {End} most
 */

/**
 * A diagnosis judged at both bounds, by its own rules.
 * @param {import('@memwatch/engine/diagnoses/define-diagnosis').Diagnosis} diagnosis
 * @param {() => Bounds | undefined} boundsOf at this moment; undefined if nothing is open
 * @returns {import('@memwatch/engine/diagnoses/define-diagnosis').Diagnosis}
 */
function atBothEnds (diagnosis, boundsOf) {
  return {
    ...diagnosis,
    // The required signals depend on the bound.
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
      // A text that is equal at both bounds does not depend on them.
      if (!other || (one.state === other.state && one.summary === other.summary)) return one
      const isStronger = STATE_RANK[one.state] > STATE_RANK[other.state]
      const [weaker, stronger] = isStronger ? [other, one] : [one, other]
      // Ruled out only if it is at both bounds.
      if (STATE_RANK[stronger.state] <= STATE_RANK.ok) return weaker
      const state = weaker.state === 'confirmed' ? 'confirmed' : 'suspected'
      // If both bounds agree, the text of the farther one is less alarming.
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
 * @param {any} signals of the moment
 * @param {import('@memwatch/agent/protocol/frame').Hello} target
 * @returns {{ signals: import('@memwatch/engine/signals/index').Signals, hello: import('@memwatch/agent/protocol/frame').Hello }}
 */
function assuming ({ values, semiSpaceMaxBytes }, signals, target) {
  const hello = semiSpaceMaxBytes === undefined ? target : { ...target, semiSpaceMaxBytes }
  return { signals: signalsOf(signals.window.assuming({ values, hello })), hello }
}

module.exports = { atBothEnds }
