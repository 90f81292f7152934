'use strict'

/**
 * Frames of a simulated service that lives for weeks. All values are computed from the time,
 * without clock or socket, and with reproducible random numbers.
 */

const { hello, gcRow, MIB } = require('../test/support/frames')

const MINUTE = 60
const HOUR = 3600
const DAY = 24 * HOUR
const DAYS_A_WEEK = 7
const WEEKDAYS = 5
/** Memory of Node.js itself beside the heap, and the file pages of RSS. */
const NATIVE_BASE_BYTES = 24 * MIB
const FILE_BYTES = 44 * MIB
const EXTERNAL_BYTES = 4 * MIB
const SEMI_SPACE_BYTES = 16 * MIB
/**
 * CPU time a second at the lowest and at the highest load, scavenges a second, garbage promoted a
 * second.
 */
const LOWEST_CPU = 0.08
const HIGHEST_CPU = 0.5
const SCAVENGES = 4
const GARBAGE_BYTES = 0.4 * MIB
/** Duration of the start, in which the live heap rises to its usual size. */
const START_SECONDS = 60

/**
 * @typedef {object} Service
 * @property {number} [heapLeak] MiB an hour that JavaScript retains
 * @property {number} [nativeLeak] MiB an hour outside the heap
 * @property {number} [swing] MiB of live heap between the quietest and the busiest hour
 * @property {number} [nativeSwing] MiB outside the heap that follow the load
 * @property {number} [base] MiB of live heap at the quietest hour
 * @property {number} [noise] MiB, standard deviation of a reading of the live heap
 * @property {number} [loadNoise] standard deviation of the load of a minute, as a share
 * @property {number} [majorsSeconds] seconds between two major GCs
 * @property {number | null} [limit] MiB of the container; null is none
 * @property {number} [heapLimit] MiB, --max-old-space-size
 * @property {number} [fill] MiB of a cache that fills after the start
 * @property {number} [fillHours] seconds in which two thirds of it are filled
 * @property {number} [spike] MiB of live heap of a job that runs now and then
 * @property {number} [spikeEveryHours] time from one start of the job to the next
 * @property {number} [spikeHours] its length
 * @property {number} [spikeChance] share of those times at which it runs at all
 * @property {number} [weekend] load at the weekend, as a share of a weekday's
 * @property {number} [startHour] hour of the day at which the process starts; 4 is the quietest
 * @property {number} [startDay] day of the week, 0 is Monday
 * @property {boolean} [loadIsSeen] false: CPU time and allocation do not follow the load
 * @property {boolean} [leaksByLoad] true: the app leaks per request, not per hour
 * @property {'sine' | 'office'} [shape] of the day
 * @property {number} [seed]
 */

/**
 * Random number for a position, independent of the order of calls: mulberry32.
 * @param {number} place
 * @returns {number} 0–1, not 0
 */
function randomAt (place) {
  let mixed = (place + 0x6D2B79F5) | 0
  mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
  return (((mixed ^ (mixed >>> 14)) >>> 0) + 1) / 4_294_967_297
}

/**
 * A sample of a normal distribution.
 * @param {number} seed
 * @param {number} i
 */
function gaussAt (seed, i) {
  const place = Math.imul(seed, 0x9E3779B1) + 2 * i
  return Math.sqrt(-2 * Math.log(randomAt(place))) * Math.cos(2 * Math.PI * randomAt(place + 1))
}

/** Office hours: from 8 to 18 with a dip at noon, ramps of an hour. @param {number} hour */
function officeLoad (hour) {
  const ramp = (/** @type {number} */ from) => Math.min(1, Math.max(0, hour - from))
  return ramp(8) - ramp(18) - 0.3 * (ramp(12) - ramp(13))
}

/**
 * Garbage in the old spaces.
 * @param {number} load
 * @param {number} seconds since the last major GC
 */
const garbageBytes = (load, seconds) => GARBAGE_BYTES * (0.2 + load) * seconds
/** @param {number} oldBytes used in the old spaces */
const heapBytes = oldBytes => oldBytes + 8 * MIB + 3 * SEMI_SPACE_BYTES
/**
 * @param {number} oldBytes used in the old spaces
 * @param {number} nativeBytes
 * @returns {number} RSS
 */
const residentBytes = (oldBytes, nativeBytes) =>
  heapBytes(oldBytes) + EXTERNAL_BYTES + nativeBytes + FILE_BYTES

class SimulatedService {
  #cpuSeconds = 0
  #scavenges = 0
  #seconds = 0
  #sequence = 0
  #served = 0
  #totalServed = 0
  #last = { majors: -1, live: 0 }

  /** @param {Service} service */
  constructor (service) {
    this.service = {
      heapLeak: 0,
      nativeLeak: 0,
      swing: 0,
      nativeSwing: 0,
      base: 560,
      noise: 4,
      loadNoise: 0.05,
      majorsSeconds: 90,
      limit: /** @type {number | null} */ (null),
      heapLimit: 4096,
      fill: 0,
      fillHours: 2,
      spike: 0,
      spikeEveryHours: 24,
      spikeHours: 0.5,
      spikeChance: 1,
      weekend: 1,
      startHour: 9,
      startDay: 0,
      loadIsSeen: true,
      leaksByLoad: false,
      shape: 'sine',
      seed: 1,
      ...service
    }
    const { limit, heapLimit } = this.service
    this.hello = hello({
      execArgv: [
        `--max-old-space-size=${heapLimit}`,
        `--max-semi-space-size=${SEMI_SPACE_BYTES / MIB}`
      ],
      constrainedBytes: limit === null ? undefined : limit * MIB
    })
  }

  /** Load without its noise, 0 to 1. @param {number} seconds since the start */
  load (seconds) {
    const { startHour, startDay, weekend, shape } = this.service
    const hours = startHour + seconds / HOUR
    const day = Math.floor(startDay + hours / 24) % DAYS_A_WEEK
    const load = shape === 'office'
      ? officeLoad(hours % 24)
      : (1 - Math.cos(2 * Math.PI * (hours - 4) / 24)) / 2
    return load * (day >= WEEKDAYS ? weekend : 1)
  }

  /** Load of a minute, with its noise. @param {number} seconds since the start */
  #noisyLoad (seconds) {
    const { loadNoise, seed } = this.service
    const noise = loadNoise * gaussAt(seed, Math.floor(seconds / MINUTE))
    return Math.max(0, this.load(seconds) * (1 + noise))
  }

  /**
   * Bytes of heap and native memory at the given time: leaked, in the cache, and for the load.
   * @param {number} seconds
   */
  levels (seconds) {
    const { heapLeak, nativeLeak, swing, nativeSwing, base, fill, fillHours } = this.service
    const load = this.load(seconds)
    const leakHours = this.service.leaksByLoad
      ? (this.#servedUntil(seconds) / HOUR) * 2
      : seconds / HOUR
    const started = Math.min(1, seconds / START_SECONDS)
    return {
      live:
        MIB *
        (base * started +
          swing * load * started +
          this.#spike(seconds) +
          fill * (1 - Math.exp(-seconds / HOUR / fillHours)) +
          heapLeak * leakHours),
      native: NATIVE_BASE_BYTES + MIB * (nativeSwing * load + nativeLeak * leakHours)
    }
  }

  /**
   * Memory of the job at the given time, in MiB. Each run needs 70 to 130 % of the usual memory.
   * @param {number} seconds
   */
  #spike (seconds) {
    const { spike, spikeEveryHours, spikeHours, spikeChance, seed } = this.service
    const run = Math.floor(seconds / HOUR / spikeEveryHours)
    const isOver = seconds / HOUR - run * spikeEveryHours >= spikeHours
    const place = Math.imul(seed + 3, 0x9E3779B1) + 2 * run
    if (spike === 0 || isOver || randomAt(place) > spikeChance) return 0
    return spike * (0.7 + 0.6 * randomAt(place + 1))
  }

  /** Integral of the load. @param {number} seconds */
  #servedUntil (seconds) {
    if (seconds < this.#served) this.#served = this.#totalServed = 0
    for (; this.#served + 600 <= seconds; this.#served += 600) {
      this.#totalServed += 600 * this.load(this.#served + 300)
    }
    return this.#totalServed + (seconds - this.#served) * this.load(seconds)
  }

  /** Bytes of the heap size limit and of the container. */
  get limits () {
    const { heapLimit, limit } = this.service
    return {
      heap: heapLimit * MIB,
      container: limit === null ? this.hello.hostMemoryBytes : limit * MIB
    }
  }

  /**
   * Live heap that a major GC leaves.
   * @param {number} majors count up to this GC
   * @param {boolean} [noisy] false: without the noise of a reading
   * @returns {number} bytes
   */
  #liveAfter (majors, noisy = true) {
    const { majorsSeconds, noise, seed } = this.service
    const { live } = this.levels(Math.max(1, majors * majorsSeconds))
    return Math.max(MIB, live + (noisy ? noise * MIB * gaussAt(seed + 1, majors) : 0))
  }

  /**
   * Time at which the live heap after a major GC reaches the heap size limit, or RSS the
   * container's.
   * @param {number} days to look ahead
   * @param {boolean} [noisy] true: the first time, by the noise of a single reading and of the load
   *   of one minute
   * @returns {number} seconds since the start; Infinity: never
   */
  endSeconds (days, noisy = true) {
    const { majorsSeconds } = this.service
    const { heap, container } = this.limits
    for (let majors = 1; majors * majorsSeconds <= days * DAY; majors++) {
      const live = this.#liveAfter(majors, noisy)
      const seconds = majors * majorsSeconds
      if (live >= heap) return seconds
      const last = seconds + majorsSeconds - 1
      const { native } = this.levels(last)
      for (let at = noisy ? seconds : last; at <= last; at = Math.min(at + MINUTE, last + 1)) {
        const next = Math.min(at - at % MINUTE + MINUTE - 1, last)
        const load = noisy ? this.#noisyLoad(next) : this.load(next)
        const garbage = garbageBytes(load, next - seconds)
        if (residentBytes(live + garbage, native) >= container) return next
      }
    }
    return Infinity
  }

  /**
   * The next frame of the service.
   * @param {number} seconds since the start, later than the one before
   * @returns {import('@memwatch/agent/protocol/frame').Frame & { type: 'frame' }}
   */
  frame (seconds) {
    const { majorsSeconds, limit, seed, loadIsSeen, heapLimit } = this.service
    const passed = seconds - this.#seconds
    this.#seconds = seconds
    const load = this.#noisyLoad(seconds)
    const seen = loadIsSeen ? load : 0.5
    this.#cpuSeconds += passed * (LOWEST_CPU + (HIGHEST_CPU - LOWEST_CPU) * seen)
    this.#scavenges += passed * SCAVENGES * (0.1 + seen)
    const majors = Math.floor(seconds / majorsSeconds)
    const level = this.levels(seconds)
    if (majors !== this.#last.majors) this.#last = { majors, live: this.#liveAfter(majors) }
    const { live } = this.#last
    const old = live + garbageBytes(load, seconds - majors * majorsSeconds)
    const young = SEMI_SPACE_BYTES * (0.2 + 0.8 * ((seconds * 0.37) % 1))
    const total = heapBytes(old)
    const native = level.native + MIB * gaussAt(seed + 2, Math.floor(seconds / 10))
    const rss = residentBytes(old, native)
    const anonymous = rss - FILE_BYTES
    const pauseSeconds = 0.002 * this.#scavenges
    const scavenges = Math.floor(this.#scavenges)
    this.#sequence++
    return {
      type: 'frame',
      sequence: this.#sequence,
      atUnixMs: this.hello.startedAtUnixMs + 1000 * seconds,
      uptimeSeconds: seconds,
      values: {
        rssBytes: rss,
        rssAnonBytes: anonymous,
        rssFileBytes: FILE_BYTES,
        cpuUserSeconds: 0.95 * this.#cpuSeconds,
        cpuSystemSeconds: 0.05 * this.#cpuSeconds,
        heapUsedBytes: old + young,
        heapTotalBytes: total,
        heapPhysicalBytes: total,
        heapSizeLimitBytes: heapLimit * MIB + 3 * SEMI_SPACE_BYTES,
        externalBytes: EXTERNAL_BYTES,
        externalPeakBytes: EXTERNAL_BYTES,
        arrayBuffersBytes: EXTERNAL_BYTES / 2,
        nativeContexts: 1,
        detachedContexts: 0,
        spaces: {
          new_space: [young, 2 * SEMI_SPACE_BYTES, SEMI_SPACE_BYTES - young, 2 * SEMI_SPACE_BYTES],
          old_space: [old - 8 * MIB, old, MIB, old],
          large_object_space: [6 * MIB, 6 * MIB, 0, 6 * MIB],
          code_space: [2 * MIB, 2 * MIB, 0, 2 * MIB]
        },
        gc: {
          'minor/ordinary': gcRow(scavenges, pauseSeconds),
          'major/ordinary': gcRow(majors, 0.02 * majors)
        },
        eventLoopActiveSeconds: 0.9 * this.#cpuSeconds,
        eventLoopIdleSeconds: seconds - 0.9 * this.#cpuSeconds,
        resources: {
          TCPServerWrap: 1,
          TCPSocketWrap: Math.round(60 * (0.2 + seen)),
          Timeout: Math.round(20 * (0.2 + seen))
        },
        openFileDescriptors: 30 + Math.round(60 * (0.2 + seen)),
        containerUsageBytes: anonymous + 2 * FILE_BYTES,
        ...(limit !== null && { containerLimitBytes: limit * MIB }),
        ...(majors > 0 && { liveHeapBytes: live, liveHeapMajors: majors })
      }
    }
  }
}

module.exports = { SimulatedService, randomAt, HOUR, DAY }
