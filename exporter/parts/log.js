'use strict'

const { Told } = require('@memwatch/engine/verdicts/told')

/** Logs events of targets, and load shedding of the exporter. */
class LogPart {
  name = 'log'
  #told = new Told()

  /** @param {import('../exporter').Exporter} exporter */
  start (exporter) {
    const { load, log } = exporter
    exporter.on('open', ({ name, thread, hello }) => {
      log.info({ target: name, thread, node: hello.node }, 'target opened')
    })
    exporter.on('end', ({ name, thread, exitCode }) => {
      log.info({ target: name, thread, exitCode }, 'target ended')
    })
    exporter.on('verdict', (target, verdict) => {
      const { name, thread } = target
      const { diagnosis, state, summary } = verdict
      // Each target rules out a dozen diagnoses when it starts. Only findings and their end are
      // news.
      const level = this.#told.change(target, verdict) ? 'info' : 'debug'
      log[level]({ target: name, thread, diagnosis, state }, summary)
    })
    exporter.on('death', ({ target, thread, reason, sure, text }) => {
      log.warn({ target, thread, reason, sure }, text)
    })
    exporter.on('alive', id => log.warn({ death: id }, 'death retracted: the process is alive'))
    exporter.on('lives', ({ name, hello }) => {
      const text = 'goodbye ignored: the process is alive'
      log.warn({ target: name, pid: hello.pid }, text)
    })
    exporter.on('captured', ({ id, kind }, { name, thread }) => {
      log.info({ capture: id, target: name, thread, kind }, 'captured')
    })
    exporter.on('captureFailed', ({ id, kind, error }, { name, thread }) => {
      log.warn({ capture: id, target: name, thread, kind }, `capture failed: ${error}`)
    })
    exporter.on('load', () => {
      log.warn({ level: load.level }, `load level ${load.level}: ${load.now.gives}`)
    })
    exporter.on('omitted', ({ name, thread, hello }, { message }) => {
      const text = 'target omitted from answers: it cannot be serialized'
      log.error({ target: name, thread, pid: hello.pid, error: message }, text)
    })
  }
}

module.exports = { LogPart }
