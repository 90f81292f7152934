'use strict'

const fs = require('node:fs')
const { deflateRawSync } = require('node:zlib')
const { exactBuffer } = require('@memwatch/engine/history/exact-buffer')
const { ordered } = require('@memwatch/engine/history/history')
const { identityOf } = require('@memwatch/engine/history/identity')
const { findCase } = require('@memwatch/engine/verdicts/case')
const { Block } = require('@memwatch/engine/history/block')
const { LAYOUT } = require('./decode-record')

/**
 * Longest time since the last report of a target that is restored. A target that reported earlier
 * probably has no agent any more.
 */
const REMEMBER_MS = 900_000

/**
 * Time span of the retained rows of seconds. Older rows are in full blocks of ten-second steps; a
 * block covers ten minutes, like the history of seconds.
 */
const KEEP_SECONDS = 1300
/**
 * Limit of the packed history of all restored targets, because the history of live targets must fit
 * as well.
 */
const MAX_PACKED_BYTES = 64 * 2 ** 20

/**
 * Id of the machine's boot. While the id is the same, the time since boot is a clock that nobody
 * can set: random(4).
 */
const BOOT = readBoot()

/** @returns {string | undefined} */
function readBoot () {
  try {
    return fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return undefined // The system is not Linux.
  }
}

/**
 * Records of a target, and their keys. In the family `seconds`:
 *
 *   target    identity of the target, repeated at intervals
 *   seconds   rows of its history, with the present counts and verdicts
 *   end       the target has ended: a later exporter does not wait for its return
 *
 * In the families `step10` and `step60`:
 *
 *   block     a full block of its flight
 *
 * @typedef {{ meta: import('./records').RecordMeta, bytes?: Buffer }} Record
 *
 * @typedef {object} Remembered
 * @property {{ hello: any, name: string, thread: string }} known
 * @property {{ time: number, row: Float64Array }[]} seconds oldest first
 * @property {import('@memwatch/engine/history/flight').SealedBlock[]} blocks of each step, oldest first
 * @property {number} lastSequence
 * @property {number} firstUptimeSeconds
 * @property {import('@memwatch/engine/verdicts/settle').Settled} settled
 */

/**
 * @param {import('@memwatch/engine/history/target').Target} target
 * @returns {Record}
 */
const introduction = ({ hello, name, thread }) => ({
  meta: { type: 'target', key: identityOf(hello), layout: LAYOUT, name, thread },
  bytes: deflateRawSync(JSON.stringify(hello))
})

/**
 * @param {string} key
 * @returns {Record}
 */
const endRecord = key => ({ meta: { type: 'end', key } })

/**
 * @param {import('@memwatch/engine/history/target').Target} target
 * @param {{ sinceSeconds: number, nowMs: number }} options sinceSeconds: uptime of the last saved
 *   row
 * @returns {{ record: Record, untilSeconds: number } | undefined} undefined without new rows
 */
function secondsRecord (target, { sinceSeconds, nowMs }) {
  const {
    seconds: { times, tracks },
    ...counts
  } = target.kept(sinceSeconds)
  const from = times.findIndex(time => time > sinceSeconds)
  if (from < 0) return undefined
  const block = new Block(ordered.length)
  for (let i = from; i < times.length; i++) {
    block.append(
      times[i],
      ordered.map(track => tracks[track][i] ?? NaN)
    )
  }
  const found = [...findCase(target).settled].filter(
    ([, { state }]) => state === 'confirmed' || state === 'suspected'
  )
  return {
    record: {
      meta: {
        type: 'seconds',
        key: identityOf(target.hello),
        layout: LAYOUT,
        boot: BOOT,
        atMs: nowMs,
        ...counts,
        settled: found
      },
      bytes: block.pack()
    },
    untilSeconds: times[times.length - 1]
  }
}

/**
 * @param {import('@memwatch/engine/history/target').Target} target
 * @param {import('@memwatch/engine/history/flight').SealedBlock} block
 * @returns {Record}
 */
const blockRecord = ({ hello, name, thread }, { stepSeconds, from, to, packed }) => ({
  meta: {
    type: 'block',
    layout: LAYOUT,
    stepSeconds,
    from,
    to,
    key: identityOf(hello),
    name,
    thread,
    startedAtUnixMs: hello.startedAtUnixMs
  },
  bytes: packed
})

/**
 * Yields the targets that were watched until shortly before the start of this exporter.
 * @param {import('./segments').Segments} segments
 * @param {{ nowMs: number, maxTargets: number }} options nowMs: time since the machine started
 * @returns {Generator<Remembered>} targets one by one, because the rows of all of them would fill
 *   the memory
 */
function * remembered (segments, { nowMs, maxTargets }) {
  /** @type {Map<string, Found>} */
  const byKey = new Map()
  let packedBytes = 0
  segments.read('seconds', ({ meta, bytes }) => {
    const before = byKey.get(meta.key)
    if (meta.type === 'end') byKey.delete(meta.key)
    if (meta.type === 'target') {
      const known = { hello: meta.hello, name: meta.name, thread: meta.thread }
      if (before) before.known = known
      else if (byKey.size < maxTargets) byKey.set(meta.key, new Found(known))
    }
    if (meta.type === 'seconds' && before && packedBytes < MAX_PACKED_BYTES) {
      packedBytes += before.add(meta, bytes)
    }
  })
  // A process cannot outlive a reboot, and a target that reported long ago no longer has an agent.
  for (const [key, { atMs }] of byKey) if (nowMs - atMs > REMEMBER_MS) byKey.delete(key)
  for (const family of ['step10', 'step60']) {
    segments.read(family, ({ meta: { type, key, stepSeconds, from, to }, place }) => {
      const blocks = type === 'block' ? byKey.get(key)?.blocks : undefined
      // A block may be on disk twice.
      if (blocks && !blocks.some(block => block.stepSeconds === stepSeconds && block.to >= to)) {
        blocks.push({ stepSeconds, from, to, read: () => segments.readAt(place) })
      }
    })
  }
  for (const { known, blocks, last, seconds } of byKey.values()) {
    yield {
      known,
      blocks,
      seconds,
      lastSequence: last?.lastSequence ?? 0,
      firstUptimeSeconds: last?.firstUptimeSeconds ?? NaN,
      settled: last?.settled ?? new Map()
    }
  }
}

/** Restored data of a target. */
class Found {
  /** @type {import('@memwatch/engine/history/flight').SealedBlock[]} */
  blocks = []
  /** The newest record of type `seconds`. @type {any} */
  last
  atMs = -Infinity
  /** @type {{ until: number, bytes: Buffer }[]} */
  #packed = []

  /** @param {Remembered['known']} known */
  constructor (known) {
    this.known = known
  }

  /**
   * @param {any} meta meta of a record of type `seconds`
   * @param {Buffer} bytes
   * @returns {number} additional bytes in memory
   */
  add (meta, bytes) {
    this.last = meta
    this.atMs = meta.boot === BOOT ? meta.atMs : -Infinity
    this.#packed.push({ until: meta.until, bytes: exactBuffer(bytes) })
    let held = bytes.length
    while (this.#packed[0].until < meta.until - KEEP_SECONDS) {
      held -= this.#packed.shift()?.bytes.length ?? 0
    }
    return held
  }

  /** Rows, oldest first. */
  get seconds () {
    /** @type {Remembered['seconds']} */
    const rows = []
    for (const { bytes } of this.#packed) {
      const block = Block.unpack(bytes, ordered.length)
      block.times.forEach((time, i) => {
        // After a failed write rows may be on disk twice.
        if (time > (rows.at(-1)?.time ?? -Infinity)) {
          rows.push({ time, row: Float64Array.from(ordered, (_, c) => block.valueAt(i, c)) })
        }
      })
    }
    return rows
  }
}

module.exports = { blockRecord, endRecord, introduction, remembered, secondsRecord }
