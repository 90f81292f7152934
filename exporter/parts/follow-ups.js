'use strict'

/**
 * Follows up every fix. Emits `followed` (target, follow-up) when the effect of an advised change
 * on a new process is decided, and `advised` (advice) for a process that ended with a finding.
 */
class FollowUpsPart {
  name = 'follow-ups'
  /** @type {import('../exporter').Exporter | undefined} */
  #exporter

  get state () {
    return { followUps: this.#exporter?.followUps }
  }

  /** @param {import('../exporter').Exporter} exporter */
  start (exporter) {
    const { followUps } = this.#exporter = exporter
    for (const event of ['advised', 'followed']) {
      followUps.on(event, (...args) => exporter.emit(event, ...args))
    }
    exporter.on('frame', target => {
      // An overloaded exporter takes no readings.
      followUps.framed(target, { reads: exporter.load.level === 0 })
    })
    exporter.on('end', target => followUps.ended(target))
  }
}

module.exports = { FollowUpsPart }
