'use strict'

const { PAUSE_ROW, SPACE_ROW, isOwnGc } = require('@memwatch/agent/protocol/frame')
const { semiSpaceCapacity } = require('@memwatch/engine/v8/heap-spaces')

/**
 * Totals of one target's frames over a whole run. A target's history stores seconds for ten minutes
 * only, which is too short for peaks and quiet phases of a run.
 */
class Gathered {
  /** @type {number[]} uptime of each frame that carries RSS */
  seconds = []
  /** @type {number[]} */
  rssBytes = []
  /** @type {number[]} cumulative CPU time of the process */
  cpuSeconds = []
  /** @type {number[]} cumulative active time of the event loop */
  loopSeconds = []
  newSpaceBytes = 0
  semiSpaceBytes = 0
  externalBytes = 0
  longestGcPauseSeconds = 0
  longestDelaySeconds = 0

  /** @param {import('@memwatch/engine/history/target').Target} target after a frame */
  take ({ frame, values }) {
    if (!frame) return
    const { rssBytes, cpuUserSeconds, cpuSystemSeconds = 0 } = values
    if (rssBytes !== undefined && cpuUserSeconds !== undefined) {
      this.seconds.push(frame.uptimeSeconds)
      this.rssBytes.push(rssBytes)
      this.cpuSeconds.push(cpuUserSeconds + cpuSystemSeconds)
      this.loopSeconds.push(values.eventLoopActiveSeconds ?? 0)
    }
    this.newSpaceBytes = Math.max(
      this.newSpaceBytes,
      values.spaces?.new_space?.[SPACE_ROW.sizeBytes] ?? 0
    )
    this.semiSpaceBytes = Math.max(this.semiSpaceBytes, semiSpaceCapacity(values.spaces) ?? 0)
    this.externalBytes = Math.max(
      this.externalBytes,
      values.externalPeakBytes ?? values.externalBytes ?? 0
    )
    this.longestDelaySeconds = Math.max(
      this.longestDelaySeconds,
      frame.values.eventLoopDelay?.[PAUSE_ROW.longestSeconds] ?? 0
    )
    for (const key in values.gc) {
      if (isOwnGc(key)) continue
      this.longestGcPauseSeconds = Math.max(
        this.longestGcPauseSeconds,
        values.gc[key][PAUSE_ROW.longestSeconds]
      )
    }
  }
}

module.exports = { Gathered }
