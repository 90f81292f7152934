'use strict'

const { InTurns } = require('../in-turns')
const { lazily } = require('../lazily')

const engine = lazily(() => require('@memwatch/engine/verdicts/evaluate'))

/**
 * Evaluates targets. Emits `verdict` (target, verdict) for each diagnosis that changed its state:
 * the first state is `unknown`, and is not emitted.
 */
class JudgingPart {
  name = 'judging'
  /** @type {InTurns | undefined} */
  #inTurns
  #diagnosisErrors = 0

  get state () {
    return { diagnosisErrors: this.#diagnosisErrors }
  }

  /** @param {import('../exporter').Exporter} exporter */
  start (exporter) {
    const inTurns = this.#inTurns = new InTurns(target => this.#judge(exporter, target))
    for (const event of ['next', 'vanish', 'end']) {
      // This runs before other listeners, so that a death is reported with the verdicts of the last
      // frame.
      exporter.targetRegistry.prependListener(event, target => inTurns.now(target))
    }
    exporter.on('frame', target => inTurns.add(target))
  }

  stop () {
    this.#inTurns?.end()
  }

  /**
   * @param {import('../exporter').Exporter} exporter
   * @param {import('@memwatch/engine/history/target').Target} target
   */
  #judge (exporter, target) {
    const changed = engine().evaluate(target, {
      everySeconds: exporter.load.evaluateSeconds(target),
      onError: error => {
        this.#diagnosisErrors++
        exporter.log.error(error)
      }
    })
    for (const verdict of changed) exporter.emit('verdict', target, verdict)
  }
}

module.exports = { JudgingPart }
