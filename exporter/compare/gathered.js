'use strict'

const { isOwnGc } = require('memwatch/frame')

/**
 * What the frames of one target say over a whole run. A target's history forgets seconds after ten
 * minutes; peaks and what lies between busy and quiet must not be forgotten.
 */
class Gathered {
  /** @type {number[]} uptime, of each frame that carries RSS */
  seconds = []
  /** @type {number[]} */
  rssBytes = []
  /** @type {number[]} cumulative, of the process */
  cpuSeconds = []
  /** @type {number[]} cumulative, that the event loop was active */
  loopSeconds = []
  newSpaceBytes = 0
  semiSpaceBytes = 0
  externalBytes = 0
  longestGcPauseSeconds = 0
  longestDelaySeconds = 0

  /** @param {import('../series/target').Target} target that has taken a frame */
  take ({ frame, values }) {
    if (!frame) return
    if (values.rssBytes !== undefined && values.cpuUserSeconds !== undefined) {
      this.seconds.push(frame.uptimeSeconds)
      this.rssBytes.push(values.rssBytes)
      this.cpuSeconds.push(values.cpuUserSeconds + values.cpuSystemSeconds)
      this.loopSeconds.push(values.eventLoopActiveSeconds ?? 0)
    }
    const [used = 0, size = 0, available = 0] = values.spaces?.new_space ?? []
    this.newSpaceBytes = Math.max(this.newSpaceBytes, size)
    this.semiSpaceBytes = Math.max(this.semiSpaceBytes, used + available)
    this.externalBytes = Math.max(
      this.externalBytes,
      values.externalPeakBytes ?? values.externalBytes ?? 0
    )
    this.longestDelaySeconds = Math.max(
      this.longestDelaySeconds,
      frame.values.eventLoopDelay?.[2] ?? 0
    )
    for (const key in values.gc) {
      if (isOwnGc(key)) continue
      this.longestGcPauseSeconds = Math.max(this.longestGcPauseSeconds, values.gc[key][2])
    }
  }
}

module.exports = { Gathered }
