'use strict'

const { memoryContainerOf } = require('../history/neighbours')
const { heapResident } = require('../memory/frame-parts')
const { rightSize, LEAKS } = require('../v8/right-size')
const { changeSizes } = require('../fixes/change-sizes')
const { runningProcess } = require('../v8/running-process')
const { SizeDays } = require('../v8/size-days')
const { findCase } = require('./case')

/** @typedef {import('../history/target').Target} Target */

const MINUTE_SECONDS = 60
/** Memory of a machine if no agent reported it. With more memory V8 would choose the same sizes. */
const MACHINE = Object.freeze({ bytes: 16 * 2 ** 30, given: false })

/**
 * Sizes of one workload, from its targets: frame by frame from a recording, or from the history of
 * living targets. Only main threads count, as their RSS includes that of the workers.
 */
class WorkloadSizes {
  #days = new SizeDays()
  /** @type {Set<string>} */
  #leaks = new Set()
  /** @type {import('../v8/right-size').MemoryDeath[]} */
  #deaths = []
  /** Target with the newest frame. @type {Target | undefined} */
  #newest
  /** @type {Map<string, number>} */
  #kills = new Map()

  /**
   * Adds the newest frame of a target.
   * @param {Target} target
   */
  frame (target) {
    const { frame, values, workers, scan, neighbours } = target
    if (!frame || target.thread !== 'main' || values.rssBytes === undefined) return
    const container = containerOf(target)
    this.#days.add(container, {
      unixSeconds: frame.atUnixMs / 1000,
      ownBytes: values.rssBytes,
      othersBytes: neighbours.memoryBytes,
      heapUsedBytes: values.heapUsedBytes,
      liveHeapBytes: values.liveHeapBytes,
      ...(values.heapPhysicalBytes !== undefined && {
        besideBytes: Math.max(0, values.rssBytes - heapResident(values, workers, scan))
      })
    })
    const { containerOomKills: kills } = values
    if (kills !== undefined) {
      if (kills > (this.#kills.get(container) ?? kills)) this.#deaths.push('oom_kill')
      this.#kills.set(container, kills)
    }
  }

  /**
   * Adds the minutes that a target stores, up to a week.
   * @param {Target} target
   */
  history (target) {
    if (target.thread !== 'main') return
    const { times, tracks } = target.flight.series(
      ['rssBytes', 'neighboursBytes', 'heapUsedBytes', 'liveHeapBytes', 'heapResidentBytes'],
      { stepSeconds: MINUTE_SECONDS }
    )
    const container = containerOf(target)
    const { rssBytes, neighboursBytes, heapUsedBytes, liveHeapBytes, heapResidentBytes } = tracks
    times.forEach((time, i) => {
      const ownBytes = rssBytes.max?.[i] ?? NaN
      if (Number.isNaN(ownBytes)) return
      this.#days.add(container, {
        unixSeconds: target.hello.startedAtUnixMs / 1000 + time,
        ownBytes,
        othersBytes: known(neighboursBytes.max?.[i]),
        heapUsedBytes: known(heapUsedBytes.max?.[i]),
        liveHeapBytes: known(liveHeapBytes.max?.[i]),
        besideBytes: known(rssBytes.last[i] - heapResidentBytes.last[i])
      })
    })
  }

  /**
   * Adds the state of a target, at its end or now.
   * @param {Target} target
   */
  state (target) {
    const newestUnixMs = this.#newest?.frame?.atUnixMs ?? -Infinity
    if ((target.frame?.atUnixMs ?? 0) >= newestUnixMs && target.thread === 'main') {
      this.#newest = target
    }
    for (const { diagnosis, state } of findCase(target).verdicts) {
      if (state === 'confirmed' && LEAKS.includes(diagnosis)) this.#leaks.add(diagnosis)
    }
  }

  /**
   * Adds a death in the observed days.
   * @param {import('../v8/right-size').MemoryDeath} reason
   */
  death (reason) {
    this.#deaths.push(reason)
  }

  /**
   * @param {{ guaranteed?: boolean }} [options]
   * @returns {import('../v8/right-size').RightSize & { change:
   *   import('../diagnoses/define-diagnosis').Change | null }} change: null if the answer has no
   *   sizes
   */
  answer ({ guaranteed } = {}) {
    const values = this.#newest?.values
    const memoryLimitBytes = values?.containerLimitBytes ?? null
    const hello = this.#newest?.hello
    const answer = rightSize({
      days: this.#days,
      leaks: [...this.#leaks],
      deaths: this.#deaths,
      present: { memoryLimitBytes, heapSizeLimitBytes: values?.heapSizeLimitBytes ?? null },
      // The sizing rules of engine/v8 are for V8 without pointer compression.
      process: hello && !hello.pointerCompression
        ? runningProcess(hello, memoryLimitBytes, MACHINE)
        : undefined,
      guaranteed
    })
    return { ...answer, change: answer.sizes && changeSizes(answer.sizes, hello) }
  }
}

/** @param {Target} target */
const containerOf = ({ hello }) =>
  memoryContainerOf(hello) ?? [hello.host, hello.name, hello.pid, hello.startedAtUnixMs].join('/')

/**
 * @param {number | undefined} value
 * @returns {number | undefined} the value; undefined for NaN
 */
const known = value => value === undefined || Number.isNaN(value) ? undefined : value

module.exports = { WorkloadSizes }
