'use strict'

/**
 * Delay of the first scan. By then all agents that waited for this exporter have connected, as they
 * retry after at most half a minute.
 */
const FIRST_SCAN_MS = 45_000
const SCAN_EVERY_MS = 10_000

/**
 * Attaches to processes that ask for it, if --attach-annotated is set; otherwise on request only.
 */
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
    // An overloaded exporter attaches to no further process.
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
