'use strict'

const { attach, attachEarlier } = require('../captures/attach')

/**
 * Restores captures, and attaches their suspects and holders to verdicts. Emits `captured` and
 * `captureFailed` (capture, target), and `holders` (target) once a heap snapshot was analysed.
 */
class CapturesPart {
  name = 'captures'
  /** @type {import('../captures/captures').Captures | undefined} */
  #captures

  get state () {
    const { counts = new Map(), bytes = 0 } = this.#captures ?? {}
    return { captures: { counts, bytes } }
  }

  /** @param {import('../exporter').Exporter} exporter */
  start (exporter) {
    const captures = this.#captures = exporter.captures
    try {
      captures.restore()
    } catch (error) {
      exporter.log.error(error, 'saved captures not restored')
    }
    exporter.on('open', target => attachEarlier(target, captures.all))
    captures.on('reading', (capture, target) => attach(target, capture))
    captures.on('done', (capture, target) => {
      attach(target, capture)
      exporter.emit(capture.error ? 'captureFailed' : 'captured', capture, target)
      if (capture.retainers) exporter.emit('holders', target)
    })
  }

  stop () {
    this.#captures?.close()
  }
}

module.exports = { CapturesPart }
