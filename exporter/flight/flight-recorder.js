'use strict'

const fs = require('node:fs')
const os = require('node:os')
const { createHash } = require('node:crypto')
const { deflateRawSync, inflateRawSync } = require('node:zlib')
const { ordered } = require('../series/history')
const { identityOf } = require('../series/targets')
const { levels } = require('../self-care/load')
const { Turns } = require('../turns')
const { Block } = require('./block')
const { columns } = require('./flight')
const { Segments } = require('./segments')

/** What is newer than this may be lost with the process; the disk is given no more to do than that. */
const SAVE_EVERY_MS = 5000
/** Within this, who a target is is said again, so that it is known without the segments before. */
const INTRODUCE_EVERY_MS = 240_000
/** Who was heard of so recently, before the exporter went, may still live. */
const REMEMBER_MS = 900_000
const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
/**
 * Given up in this order when there is no more room: resolution first. Seconds are kept for as long as a block of ten seconds is not
 * full, and a restart may need them.
 * @type {readonly import('./segments').Family[]}
 */
const FAMILIES = Object.freeze([
  { name: 'seconds', keepMs: 30 * MINUTE_MS, segmentMs: 5 * MINUTE_MS },
  { name: 'step10', keepMs: 6 * HOUR_MS, segmentMs: HOUR_MS },
  { name: 'step60', keepMs: 7 * 24 * HOUR_MS, segmentMs: 12 * HOUR_MS },
  { name: 'deaths', keepMs: 30 * 24 * HOUR_MS, segmentMs: 24 * HOUR_MS }
])

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
 * @typedef {object} Remembered what is known of a target from before
 * @property {{ hello: any, name: string, thread: string }} known
 * @property {{ time: number, row: Float64Array }[]} seconds
 * @property {import('./flight').SealedBlock[]} blocks
 * @property {number} lastSequence
 * @property {number} firstUptimeSeconds
 * @property {[string, any][]} settled
 */

/** Keeps what targets did and who died on disk, and restores it. Without a folder it only bounds what is in memory. */
class FlightRecorder {
  #targets
  #segments
  #now
  /** Saved so far, of each target. @type {WeakMap<import('../series/target').Target, { untilSeconds: number, introducedMs: number }>} */
  #saved = new WeakMap()
  /** @type {NodeJS.Timeout | undefined} */
  #timer
  /** @type {Promise<void> | undefined} */
  #saving
  /** Blocks that were given up to bound memory. */
  #shed = 0
  #memoryBytes

  /**
   * @param {object} options
   * @param {import('../series/targets').Targets} options.targets
   * @param {string} [options.folder] without one nothing is saved
   * @param {number} [options.maxBytes] on disk
   * @param {() => number} [options.memoryBytes] most of full blocks, of all targets, that may be in memory: where there is no disk, or while it fails
   * @param {(failure: Error | undefined) => void} [options.onFailure]
   * @param {() => number} [options.now] ms since the machine started
   */
  constructor ({ targets, folder, maxBytes = 256 * 2 ** 20, memoryBytes = () => levels[0].historyBytes, onFailure, now = () => 1000 * os.uptime() }) {
    this.#targets = targets
    this.#now = now
    this.#memoryBytes = memoryBytes
    if (folder) this.#segments = new Segments(folder, { families: FAMILIES, maxBytes, onFailure })
    targets.on('end', target => {
      target.flight.seal()
      this.#save(target, { ended: true })
    })
  }

  /** How much is kept, and how well. */
  get state () {
    const segments = this.#segments
    return {
      memoryBytes: this.#targets.all.reduce((sum, { flight }) => sum + flight.packedBytes, 0),
      diskBytes: segments?.bytes ?? 0,
      saving: Boolean(segments && !segments.failure),
      dropped: (segments?.dropped ?? 0) + this.#shed,
      torn: segments?.torn ?? 0
    }
  }

  /**
   * Targets that were watched until shortly before, and everybody who died.
   * @param {Pick<import('../deaths/deaths').Deaths, 'restore' | 'retract'>} deaths
   */
  restore (deaths) {
    const segments = this.#segments
    if (!segments) return
    segments.read('deaths', ({ meta, bytes }) => {
      if (meta.type === 'death') deaths.restore(meta.death, bytes)
      if (meta.type === 'retracted') deaths.retract(meta.id)
    })
    for (const { known, ...kept } of this.#remembered(segments)) {
      const settled = new Map(kept.settled.map(([id, state]) => [id, { ...state, confirmedAtSeconds: state.confirmedAtSeconds ?? NaN }]))
      this.#targets.restore(known, target => {
        target.restore({ ...kept, settled })
        this.#saved.set(target, { untilSeconds: target.lastSeconds, introducedMs: -Infinity })
      })
    }
  }

  start () {
    this.#timer = setInterval(() => this.save(), SAVE_EVERY_MS)
    this.#timer.unref()
  }

  /** Save what is new. Called on a timer; of one that takes longer the next waits. */
  save () {
    this.#saving ??= this.#saveAll().finally(() => { this.#saving = undefined })
    return this.#saving
  }

  async #saveAll () {
    const turns = new Turns()
    /** @type {Promise<void>[]} */
    const saved = []
    for (const target of this.#targets.all) {
      saved.push(this.#save(target))
      if (turns.over) await turns.next()
    }
    await Promise.all(saved)
    await this.#segments?.written()
    await this.#segments?.tidy()
    this.#bound()
  }

  /**
   * Its end is told, so it must not be remembered, and told again, by an exporter after this one.
   * @param {import('../deaths/deaths').Death} death @param {Buffer} lastMinutes packed @param {import('../series/target').Target} target
   */
  death (death, lastMinutes, target) {
    this.#segments?.append('deaths', [{ meta: { type: 'death', death }, bytes: lastMinutes }])
    this.#save(target, { ended: true })
  }

  /** It was none. @param {string} id of a death */
  retract (id) {
    this.#segments?.append('deaths', [{ meta: { type: 'retracted', id } }])
  }

  /** Save the rest, and close. */
  async stop () {
    clearInterval(this.#timer)
    await this.#saving
    for (const target of this.#targets.all) target.flight.seal()
    await this.save()
    await this.#segments?.close()
  }

  /**
   * Never rejects. What is saved is put together at once: a slow disk must not hold on to targets that have ended.
   * @param {import('../series/target').Target} target @param {{ ended?: boolean }} [now] ended: it must not be remembered
   */
  async #save (target, { ended = false } = {}) {
    const segments = this.#segments
    if (!segments) return
    const now = this.#now()
    const saved = this.#saved.get(target) ?? { untilSeconds: -Infinity, introducedMs: -Infinity }
    this.#saved.set(target, saved)
    const key = identityOf(target.hello)
    const { name, thread, hello } = target
    /** @type {{ meta: any, bytes?: Buffer }[]} */
    const records = []
    const { untilSeconds } = saved
    const seconds = this.#newSeconds(target, saved)
    if (seconds) {
      if (now - saved.introducedMs >= INTRODUCE_EVERY_MS || now < saved.introducedMs) {
        saved.introducedMs = now
        records.push({ meta: { type: 'target', key, layout: LAYOUT, name, thread }, bytes: deflateRawSync(JSON.stringify(hello)) })
      }
      records.push({ meta: { type: 'seconds', key, layout: LAYOUT, boot: BOOT, atMs: now, ...seconds.meta }, bytes: seconds.bytes })
    }
    if (ended && saved.introducedMs > -Infinity) {
      records.push({ meta: { type: 'end', key } })
      saved.introducedMs = -Infinity // who comes back is introduced anew
    }
    const blocks = target.flight.sealed.filter(({ packed }) => packed)
    const append = async () => {
      if (records.length === 0 || await segments.append('seconds', records)) return
      // What the disk did not take is still in the history: it goes with the next.
      saved.untilSeconds = Math.min(saved.untilSeconds, untilSeconds)
      saved.introducedMs = -Infinity
    }
    await Promise.all([
      append(),
      ...blocks.map(block => this.#saveBlock(segments, { key, name, thread, startedAtUnixMs: hello.startedAtUnixMs }, block))
    ])
  }

  /** @param {import('../series/target').Target} target @param {{ untilSeconds: number }} saved is moved on */
  #newSeconds (target, saved) {
    const { seconds: { times, tracks }, settled, ...meta } = target.kept(saved.untilSeconds)
    const from = times.findIndex(time => time > saved.untilSeconds)
    if (from < 0) return undefined
    saved.untilSeconds = times[times.length - 1]
    const block = new Block(ordered.length)
    for (let i = from; i < times.length; i++) block.append(times[i], ordered.map(track => tracks[track][i] ?? NaN))
    const found = [...settled].filter(([, { state }]) => state === 'confirmed' || state === 'suspected')
    return { meta: { ...meta, settled: found }, bytes: block.pack() }
  }

  /** A block that is on disk need not be in memory. @param {Segments} segments @param {object} of @param {import('./flight').SealedBlock} block */
  async #saveBlock (segments, of, block) {
    const { stepSeconds, from, to, packed } = block
    const places = await segments.append(`step${stepSeconds}`, [{ meta: { type: 'block', layout: LAYOUT, stepSeconds, from, to, ...of }, bytes: packed }])
    if (!places) return
    const [place] = places
    block.read = () => segments.readAt(place)
    block.packed = undefined
  }

  /** @param {Segments} segments @returns {Remembered[]} */
  #remembered (segments) {
    /** @type {Map<string, Remembered & { atMs: number }>} */
    const byKey = new Map()
    const now = this.#now()
    segments.read('seconds', ({ meta, bytes }) => {
      if (meta.layout !== LAYOUT && meta.type !== 'end') return
      try {
        if (meta.type === 'target') {
          const known = { hello: JSON.parse(inflateRawSync(bytes).toString()), name: meta.name, thread: meta.thread }
          const before = byKey.get(meta.key)
          if (before) before.known = known
          else byKey.set(meta.key, { known, seconds: [], blocks: [], lastSequence: 0, firstUptimeSeconds: NaN, settled: [], atMs: -Infinity })
        }
        if (meta.type === 'end') byKey.delete(meta.key)
        const target = byKey.get(meta.key)
        if (meta.type !== 'seconds' || !target) return
        const block = Block.unpack(bytes)
        block.times.forEach((time, i) => target.seconds.push({ time, row: Float64Array.from(ordered, (_, c) => block.valueAt(i, c)) }))
        Object.assign(target, { lastSequence: meta.lastSequence, firstUptimeSeconds: meta.firstUptimeSeconds, settled: meta.settled, atMs: meta.boot === BOOT ? meta.atMs : -Infinity })
      } catch {
        segments.torn++
      }
    })
    // No process outlives its machine, and one that was heard of long ago has no agent any more.
    for (const [key, { atMs }] of byKey) if (now - atMs > REMEMBER_MS) byKey.delete(key)
    for (const family of ['step10', 'step60']) {
      segments.read(family, ({ meta, place }) => {
        if (meta.layout !== LAYOUT) return
        byKey.get(meta.key)?.blocks.push({ stepSeconds: meta.stepSeconds, from: meta.from, to: meta.to, read: () => segments.readAt(place) })
      })
    }
    return [...byKey.values()]
  }

  /** Where blocks have to stay in memory, the finest and oldest go first. */
  #bound () {
    const held = this.#targets.all.flatMap(({ flight, hello }) => flight.sealed.filter(({ packed }) => packed).map(block => ({ flight, block, atUnixMs: hello.startedAtUnixMs + 1000 * block.from })))
    let bytes = held.reduce((sum, { block }) => sum + (block.packed?.length ?? 0), 0)
    held.sort((a, b) => a.block.stepSeconds - b.block.stepSeconds || a.atUnixMs - b.atUnixMs)
    for (const { flight, block } of held) {
      if (bytes <= this.#memoryBytes()) break
      bytes -= block.packed?.length ?? 0
      flight.drop(block)
      this.#shed++
    }
  }
}

module.exports = { FlightRecorder, SAVE_EVERY_MS }
