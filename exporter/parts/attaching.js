'use strict'

/** Agents that waited for this exporter have connected: they retry after half a minute at most. */
const FIRST_SCAN_MS = 45_000
const SCAN_EVERY_MS = 10_000

/** Attaches to the processes that ask for it, with --attach-annotated; else on request only. */
class AttachingPart {
  name = 'attaching'
  /** @type {import('../attachment/attacher').Attacher | undefined} */
  #attacher
  /** @type {NodeJS.Timeout | undefined} */
  #timer
  #isOver = false

  get state () {
    return { attachments: this.#attacher?.counts }
  }

  /** @param {import('../exporter').Exporter} exporter */
  start ({ attacher, config, load, log }) {
    this.#attacher = attacher
    if (!attacher || !config.attachAnnotated) return
    const { AnnotatedProcesses } = require('../attachment/annotated')
    const processes = new AnnotatedProcesses({ attacher, log })
    // An exporter that has too much to do begins nothing more.
    const isFree = () => load.level === 0 && !this.#isOver
    const scan = async () => {
      try {
        if (isFree()) await processes.scan(isFree)
      } catch (error) {
        log.error(error, '--attach-annotated: a scan of the processes failed')
      }
      if (!this.#isOver) this.#timer = setTimeout(scan, SCAN_EVERY_MS).unref()
    }
    this.#timer = setTimeout(scan, FIRST_SCAN_MS).unref()
  }

  async stop () {
    this.#isOver = true
    clearTimeout(this.#timer)
    await this.#attacher?.stop()
  }
}

module.exports = { AttachingPart }
