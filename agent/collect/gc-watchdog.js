'use strict'

const primordials = require('../primordials')

/** GCs a second that an app which does nothing else does not cause by itself. */
const SUSPECT_PER_SECOND = 10
/** Frames in a row that must look like it: a benchmark of ten seconds is no loop. */
const SUSPECT_FRAMES = 10
/** Share of the loop's time that is left for the app: below it, all there is are GCs and what they call. */
const OTHER_SHARE = 0.2
/** A trial loses the GCs of its time: another one not before so long. */
const TRIAL_EVERY_SECONDS = 600
/** Frames without the observer, to see whether it was the cause. */
const TRIAL_FRAMES = 5
/** It was where the process takes less than this share of the CPU time without it. */
const CAUSE_SHARE = 0.5

/**
 * Watches the watching of GCs: an observer of GCs was seen to keep them going on an otherwise idle loop, each delivery causing
 * the next one (nodejs/node#62721, on 24.14 and 25.9). Where GCs are frequent while the loop does nothing else, observing stops for
 * a few seconds; where the CPU time falls with it, it stays so.
 *
 * watching -> trial -> watching, or -> stopped.
 *
 * @param {object} dependencies
 * @param {() => void} dependencies.disconnect
 * @param {() => void} dependencies.connect
 * @param {() => { active: number, idle: number }} [dependencies.utilization] ms so far
 * @param {() => NodeJS.CpuUsage} [dependencies.cpuUsage] µs so far
 * @param {() => number} [dependencies.nowMs]
 */
function gcWatchdog ({ disconnect, connect, utilization = primordials.eventLoopUtilization, cpuUsage = primordials.cpuUsage, nowMs = primordials.nowMs }) {
  /** @type {'watching' | 'trial' | 'stopped'} */
  let state = 'watching'
  let frames = 0
  let before = reading(0, 0)
  let lastCount = 0
  let lastAtSeconds = before.atSeconds
  /** CPU seconds a second while it looked like it. */
  let suspectShare = 0
  let trialBegan = before
  let nextTrialAt = 0

  /** @param {number} count of GCs so far @param {number} pauseSeconds so far */
  function reading (count, pauseSeconds) {
    const { active } = utilization()
    const { user, system } = cpuUsage()
    return { atSeconds: nowMs() / 1000, count, pauseSeconds, activeSeconds: active / 1000, cpuSeconds: (user + system) / 1e6 }
  }

  return {
    get stopped () { return state === 'stopped' },
    /** Called each frame. @param {number} count of GCs so far @param {number} pauseSeconds of all of them */
    look (count, pauseSeconds) {
      if (state === 'stopped') return
      const atSeconds = nowMs() / 1000
      const isFrequent = (count - lastCount) / (atSeconds - lastAtSeconds) >= SUSPECT_PER_SECOND
      lastCount = count
      lastAtSeconds = atSeconds
      if (state === 'watching' && !isFrequent) {
        // By far the most frequent case: not worth a reading.
        before.atSeconds = NaN
        frames = 0
        return
      }
      const now = reading(count, pauseSeconds)
      if (state === 'trial') {
        if (++frames < TRIAL_FRAMES) return
        const share = (now.cpuSeconds - trialBegan.cpuSeconds) / (now.atSeconds - trialBegan.atSeconds)
        state = share < CAUSE_SHARE * suspectShare ? 'stopped' : 'watching'
        if (state === 'watching') connect()
        frames = 0
        before = now
        return
      }
      const seconds = now.atSeconds - before.atSeconds
      const other = now.activeSeconds - before.activeSeconds - (now.pauseSeconds - before.pauseSeconds)
      const suspect = (now.count - before.count) / seconds >= SUSPECT_PER_SECOND && other / seconds < OTHER_SHARE
      frames = suspect ? frames + 1 : 0
      suspectShare = (now.cpuSeconds - before.cpuSeconds) / seconds
      before = now
      if (frames < SUSPECT_FRAMES || now.atSeconds < nextTrialAt) return
      nextTrialAt = now.atSeconds + TRIAL_EVERY_SECONDS
      state = 'trial'
      frames = 0
      trialBegan = now
      disconnect()
    }
  }
}

module.exports = { gcWatchdog, SUSPECT_FRAMES, TRIAL_FRAMES }
