'use strict'

const { attach, attachEarlier, OF_PROCESS } = require('../captures/attach')
const { processOf } = require('@memwatch/engine/history/identity')

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
    // A capture of a worker may be due to a verdict of its main thread about the whole process.
    const attachBoth = (
      /** @type {import('../captures/captures').Capture} */ capture,
      /** @type {import('@memwatch/engine/history/target').Target} */ target
    ) => {
      attach(target, capture)
      const main = target.hello.threadId > 0 && capture.diagnosis === OF_PROCESS &&
        exporter.targets.find(({ hello }) =>
          hello.threadId === 0 && processOf(hello) === processOf(target.hello))
      if (main) attach(main, capture)
    }
    captures.on('reading', attachBoth)
    captures.on('done', (capture, target) => {
      attachBoth(capture, target)
      exporter.emit(capture.error ? 'captureFailed' : 'captured', capture, target)
      if (capture.retainers) exporter.emit('holders', target)
    })
  }

  stop () {
    this.#captures?.close()
  }
}

module.exports = { CapturesPart }
