'use strict'

const fs = require('node:fs')
const { createHash } = require('node:crypto')
const { deflateRawSync, inflateRawSync } = require('node:zlib')
const { ordered } = require('../series/history')
const { identityOf } = require('../series/targets')
const { Block } = require('./block')
const { columns } = require('./flight')

/** Who was heard of so recently, before the exporter went, may still live. */
const REMEMBER_MS = 900_000

/** Rows of other columns, as an older exporter may have saved them, cannot be read. */
const LAYOUT = createHash('sha256').update(JSON.stringify([ordered, columns])).digest('hex').slice(0, 12)

/** Which start of the machine this is: in it, time since is a clock that nobody sets. random(4) */
const BOOT = readBoot()

/** @returns {string | undefined} */
function readBoot () {
  try {
    return fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return undefined // not Linux
  }
}

/**
 * What is saved of a target, and how it is found again. Of the family `seconds`:
 *
 *   target    who it is, now and then anew
 *   seconds   rows of its history, and where its counts and verdicts stand
 *   end       it is not waited for any more
 *
 * Of `step10` and `step60`:
 *
 *   block     a full block of its flight
 *
 * @typedef {{ meta: import('./records').RecordMeta, bytes?: Buffer }} Record
 *
 * @typedef {object} Remembered
 * @property {{ hello: any, name: string, thread: string }} known
 * @property {{ time: number, row: Float64Array }[]} seconds oldest first
 * @property {import('./flight').SealedBlock[]} blocks of each step, oldest first
 * @property {number} lastSequence
 * @property {number} firstUptimeSeconds
 * @property {import('../classify/settle').Settled} settled
 */

/** @param {import('../series/target').Target} target @returns {Record} */
const introduction = ({ hello, name, thread }) => ({
  meta: { type: 'target', key: identityOf(hello), layout: LAYOUT, name, thread }, bytes: deflateRawSync(JSON.stringify(hello))
})

/** @param {string} key @returns {Record} */
const endRecord = key => ({ meta: { type: 'end', key } })

/**
 * @param {import('../series/target').Target} target
 * @param {{ sinceSeconds: number, nowMs: number }} options sinceSeconds: uptime of the last row that was saved
 * @returns {{ record: Record, untilSeconds: number } | undefined} undefined when nothing is new
 */
function secondsRecord (target, { sinceSeconds, nowMs }) {
  const { seconds: { times, tracks }, settled, ...counts } = target.kept(sinceSeconds)
  const from = times.findIndex(time => time > sinceSeconds)
  if (from < 0) return undefined
  const block = new Block(ordered.length)
  for (let i = from; i < times.length; i++) block.append(times[i], ordered.map(track => tracks[track][i] ?? NaN))
  const found = [...settled].filter(([, { state }]) => state === 'confirmed' || state === 'suspected')
  return {
    record: { meta: { type: 'seconds', key: identityOf(target.hello), layout: LAYOUT, boot: BOOT, atMs: nowMs, ...counts, settled: found }, bytes: block.pack() },
    untilSeconds: times[times.length - 1]
  }
}

/** @param {import('../series/target').Target} target @param {import('./flight').SealedBlock} block @returns {Record} */
const blockRecord = ({ hello, name, thread }, { stepSeconds, from, to, packed }) => ({
  meta: { type: 'block', layout: LAYOUT, stepSeconds, from, to, key: identityOf(hello), name, thread, startedAtUnixMs: hello.startedAtUnixMs }, bytes: packed
})

/**
 * Those that were watched until shortly before.
 * @param {import('./segments').Segments} segments
 * @param {number} nowMs since the machine started
 * @returns {Remembered[]}
 */
function remembered (segments, nowMs) {
  /** @type {Map<string, Remembered & { atMs: number }>} */
  const byKey = new Map()
  segments.read('seconds', ({ meta, bytes }) => {
    if (meta.type === 'end') byKey.delete(meta.key)
    if (meta.layout !== LAYOUT) return
    try {
      if (meta.type === 'target') {
        const known = { hello: JSON.parse(inflateRawSync(bytes).toString()), name: meta.name, thread: meta.thread }
        const before = byKey.get(meta.key)
        if (before) before.known = known
        else byKey.set(meta.key, { known, seconds: [], blocks: [], lastSequence: 0, firstUptimeSeconds: NaN, settled: new Map(), atMs: -Infinity })
      }
      const target = byKey.get(meta.key)
      if (meta.type === 'seconds' && target) takeSeconds(target, meta, Block.unpack(bytes))
    } catch {
      segments.torn++
    }
  })
  // No process outlives its machine, and one that was heard of long ago has no agent any more.
  for (const [key, { atMs }] of byKey) if (nowMs - atMs > REMEMBER_MS) byKey.delete(key)
  for (const family of ['step10', 'step60']) {
    segments.read(family, ({ meta: { layout, key, stepSeconds, from, to }, place }) => {
      const blocks = layout === LAYOUT ? byKey.get(key)?.blocks : undefined
      // One may have been saved twice.
      if (blocks && !blocks.some(block => block.stepSeconds === stepSeconds && block.to >= to)) blocks.push({ stepSeconds, from, to, read: () => segments.readAt(place) })
    })
  }
  return [...byKey.values()]
}

/** @param {Remembered & { atMs: number }} target @param {any} meta @param {Block} block */
function takeSeconds (target, { lastSequence, firstUptimeSeconds, settled, boot, atMs }, block) {
  block.times.forEach((time, i) => {
    // After a write that failed, rows may be there twice.
    if (time > (target.seconds.at(-1)?.time ?? -Infinity)) target.seconds.push({ time, row: Float64Array.from(ordered, (_, c) => block.valueAt(i, c)) })
  })
  Object.assign(target, {
    lastSequence,
    firstUptimeSeconds,
    settled: new Map(settled.map((/** @type {[string, any]} */ [id, state]) => [id, { ...state, confirmedAtSeconds: state.confirmedAtSeconds ?? NaN }])),
    atMs: boot === BOOT ? atMs : -Infinity
  })
}

module.exports = { blockRecord, endRecord, introduction, remembered, secondsRecord }
