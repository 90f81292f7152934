'use strict'

const os = require('node:os')
const { findCase } = require('@memwatch/engine/verdicts/case')
const { exactBuffer } = require('@memwatch/engine/history/exact-buffer')
const { identityOf } = require('@memwatch/engine/history/identity')
const { levels } = require('../self-care/load')
const { Turns } = require('../turns')
const { decodeRecord } = require('./decode-record')
const { Segments } = require('./segments')
const {
  blockRecord,
  endRecord,
  introduction,
  remembered,
  secondsRecord
} = require('./target-records')

/** Interval between saves. Data since the last save may be lost with the process. */
const SAVE_EVERY_MS = 5000
/**
 * Interval between saves until SAVE_EVERY_MS have passed since the start, so that an exporter in a
 * restart loop loses little.
 */
const FIRST_SAVES_EVERY_MS = 1000
/** Delay of the save after a pause, in which the exporter first reads the waiting frames. */
const CAUGHT_UP_MS = 500
/**
 * Interval at which the identity of a target is written again, so that each segment is
 * self-contained.
 */
const INTRODUCE_EVERY_MS = 240_000
/** Upper bound of deaths and ends that wait while the disk fails. */
const MAX_OWED = 200
const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
/**
 * Families in the order in which they are deleted if space runs out: finest resolution first. Rows
 * of seconds are kept until their block of ten-second steps is full, because a restart may need
 * them.
 * @type {readonly import('./segments').Family[]}
 */
const FAMILIES = Object.freeze([
  { name: 'seconds', keepMs: 30 * MINUTE_MS, segmentMs: 5 * MINUTE_MS },
  { name: 'step10', keepMs: 6 * HOUR_MS, segmentMs: HOUR_MS },
  { name: 'step60', keepMs: 7 * 24 * HOUR_MS, segmentMs: 12 * HOUR_MS },
  { name: 'deaths', keepMs: 30 * 24 * HOUR_MS, segmentMs: 24 * HOUR_MS }
])

/**
 * @typedef {object} Saved
 * @property {number} untilSeconds uptime of the last row on disk
 * @property {number} endedSeconds uptime of the last row when the end of the target was reported;
 *   unsaved rows up to it must not be saved later, because the target would look alive
 * @property {number} introducedMs
 */

/**
 * Stores histories and deaths on disk, and restores them. Without a folder it only bounds the
 * memory of histories.
 */
class FlightRecorder {
  #targets
  #segments
  #now
  /**
   * Progress of saving for each target.
   * @type {WeakMap<import('@memwatch/engine/history/target').Target, Saved>}
   */
  #saved = new WeakMap()
  /**
   * Events that are not on disk yet, in order.
   * @type {{ family: string, record: import('./target-records').Record }[]}
   */
  #owed = []
  /** @type {NodeJS.Timeout | undefined} */
  #timer
  /** @type {Promise<void> | undefined} */
  #saving
  /** Number of blocks dropped to bound memory. */
  #shed = 0
  #memoryBytes
  #hold

  /**
   * @param {object} options
   * @param {import('@memwatch/engine/history/targets').Targets} options.targets
   * @param {string} [options.folder] folder on disk; without one nothing is saved
   * @param {import('../data-folder/quarantine').Quarantine} [options.quarantine] receives files
   *   that cannot be restored
   * @param {() => Promise<void>} [options.hold] verifies before each save that this process holds
   *   the folder's lock; throws if another process holds it
   * @param {number} [options.maxBytes] on disk
   * @param {() => number} [options.memoryBytes] limit of full blocks in memory, for all targets
   *   together, if there is no disk or if it fails
   * @param {(failure: Error | undefined) => void} [options.onFailure]
   * @param {() => number} [options.now] ms since the machine started
   */
  constructor ({
    targets,
    folder,
    quarantine,
    hold = async () => {},
    maxBytes = 256 * 2 ** 20,
    memoryBytes = () => levels[0].historyBytes,
    onFailure,
    now = () => 1000 * os.uptime()
  }) {
    this.#targets = targets
    this.#now = now
    this.#memoryBytes = memoryBytes
    this.#hold = hold
    if (folder) {
      this.#segments = new Segments(folder, {
        families: FAMILIES,
        maxBytes,
        onFailure,
        decode: decodeRecord,
        quarantine
      })
    }
  }

  /** Size of the stored history, and losses of data. */
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
   * Restores the targets that were watched until shortly before this start, and all deaths.
   * @param {Pick<import('../deaths/deaths').Deaths, 'restore' | 'explain' | 'retract'>} deaths
   * @param {Pick<import('../follow-ups/follow-ups').FollowUps, 'restore' | 'restoreAdvice'>}
   *   [followUps]
   */
  restore (deaths, followUps) {
    const segments = this.#segments
    if (!segments) return
    segments.read('deaths', ({ meta, bytes }) => {
      if (meta.type === 'death') deaths.restore(meta.death, exactBuffer(bytes))
      if (meta.type === 'explained') deaths.explain(meta.id, meta.holders)
      if (meta.type === 'retracted') deaths.retract(meta.id)
      if (meta.type === 'advised') followUps?.restoreAdvice(meta.advice)
      if (meta.type === 'followed') followUps?.restore(meta.followUp)
    })
    for (const { known, ...found } of remembered(segments, {
      nowMs: this.#now(),
      maxTargets: this.#targets.max
    })) {
      try {
        this.#targets.restore(known, target => {
          target.restore(found)
          findCase(target).settled = found.settled
          this.#saved.set(target, {
            untilSeconds: target.lastSeconds,
            endedSeconds: -Infinity,
            introducedMs: -Infinity
          })
        })
      } catch {
        // The target's saved records contradict each other, so it starts without history.
        segments.torn++
      }
    }
  }

  start () {
    const startedMs = this.#now()
    const saveIn = (/** @type {number} */ delayMs) => {
      const asleepMs = this.#now()
      this.#timer = setTimeout(() => {
        const now = this.#now()
        this.save()
        if (now - asleepMs > 1.5 * delayMs) setTimeout(() => this.save(), CAUGHT_UP_MS).unref()
        saveIn(now - startedMs < SAVE_EVERY_MS ? FIRST_SAVES_EVERY_MS : SAVE_EVERY_MS)
      }, delayMs).unref()
    }
    saveIn(FIRST_SAVES_EVERY_MS)
  }

  /** Saves new rows. A timer calls this method; during a slow save, a call returns that save. */
  save () {
    this.#saving ??= this.#saveAll().finally(() => {
      this.#saving = undefined
    })
    return this.#saving
  }

  async #saveAll () {
    const segments = this.#segments
    // No record is prepared while the disk fails, as the backlog would grow each time.
    if (segments && (await this.#isReady(segments))) {
      this.#payOwed(segments)
      const turns = new Turns()
      for (const target of this.#targets.all) {
        this.#save(segments, target)
        if (turns.over) await turns.next()
      }
      await segments.written()
      await segments.tidy()
    }
    this.#bound()
  }

  /**
   * @param {Segments} segments
   * @returns {Promise<boolean>}
   */
  async #isReady (segments) {
    // If files were removed from the disk, the data still in memory is saved again.
    if (await segments.removed()) this.#saved = new WeakMap()
    const ready = await segments.ready()
    try {
      await this.#hold()
      return ready
    } catch (error) {
      segments.fail(/** @type {Error} */ (error))
      return false
    }
  }

  /**
   * @param {import('../deaths/deaths').Death} death
   * @param {Buffer} lastMinutes packed
   * @param {import('@memwatch/engine/history/target').Target} target
   */
  death (death, lastMinutes, target) {
    this.#owe('deaths', { meta: { type: 'death', death }, bytes: lastMinutes })
    this.#end(target)
  }

  /** @param {import('@memwatch/engine/history/target').Target} target */
  ended (target) {
    target.flight.seal()
    this.#end(target)
  }

  /**
   * Saves the analysis of a death's heap snapshot.
   * @param {string} id
   * @param {import('@memwatch/engine/verdicts/holders').Holders} holders
   */
  explain (id, holders) {
    this.#owe('deaths', { meta: { type: 'explained', id, holders } })
  }

  /** Retracts a death. @param {string} id of a death */
  retract (id) {
    this.#owe('deaths', { meta: { type: 'retracted', id } })
  }

  /**
   * Saves the advice for an ended process.
   * @param {import('@memwatch/engine/verdicts/follow-up').Advice} advice
   */
  advised (advice) {
    this.#owe('deaths', { meta: { type: 'advised', advice } })
  }

  /** @param {import('@memwatch/engine/verdicts/follow-up').FollowUp} followUp an ended follow-up */
  followed (followUp) {
    this.#owe('deaths', { meta: { type: 'followed', followUp } })
  }

  /** Saves the remaining rows, and closes. */
  async stop () {
    clearTimeout(this.#timer)
    await this.#saving
    for (const target of this.#targets.all) target.flight.seal()
    await this.save()
    await this.#segments?.close()
  }

  /**
   * Saves the end of a target, so that a later exporter neither restores it nor reports its end
   * again.
   * @param {import('@memwatch/engine/history/target').Target} target
   */
  #end (target) {
    if (!this.#segments) return
    if (!this.#segments.failure) this.#save(this.#segments, target)
    this.#owe('seconds', endRecord(identityOf(target.hello)))
    const saved = this.#savedOf(target)
    saved.endedSeconds = target.lastSeconds
    // The identity of a target that returns is written again.
    saved.introducedMs = -Infinity
  }

  /**
   * @param {string} family
   * @param {import('./target-records').Record} record record of an event that occurs once
   */
  #owe (family, record) {
    if (!this.#segments) return
    this.#owed.push({ family, record })
    if (this.#owed.length > MAX_OWED) {
      this.#owed.shift()
      this.#shed++
    }
    this.#payOwed(this.#segments)
  }

  /** @param {Segments} segments */
  async #payOwed (segments) {
    const owed = this.#owed
    this.#owed = []
    const paid = await Promise.all(
      owed.map(({ family, record }) => segments.append(family, [record]))
    )
    this.#owed.unshift(...owed.filter((_, i) => !paid[i]))
  }

  /**
   * Saves the new rows of a target. It never rejects. The data is copied at once, because a slow
   * disk must not keep ended targets in memory.
   * @param {Segments} segments
   * @param {import('@memwatch/engine/history/target').Target} target
   */
  async #save (segments, target) {
    const blocks = target.flight.sealed.filter(({ packed }) => packed)
    await Promise.all([
      this.#saveSeconds(segments, target),
      ...blocks.map(block => this.#saveBlock(segments, target, block))
    ])
  }

  /** @param {import('@memwatch/engine/history/target').Target} target */
  #savedOf (target) {
    const saved = this.#saved.get(target) ?? {
      untilSeconds: -Infinity,
      endedSeconds: -Infinity,
      introducedMs: -Infinity
    }
    this.#saved.set(target, saved)
    return saved
  }

  /**
   * @param {Segments} segments
   * @param {import('@memwatch/engine/history/target').Target} target
   */
  async #saveSeconds (segments, target) {
    const now = this.#now()
    const saved = this.#savedOf(target)
    const before = saved.untilSeconds
    const seconds = secondsRecord(target, {
      sinceSeconds: Math.max(before, saved.endedSeconds),
      nowMs: now
    })
    if (!seconds) return
    const records = [seconds.record]
    if (now - saved.introducedMs >= INTRODUCE_EVERY_MS || now < saved.introducedMs) {
      saved.introducedMs = now
      records.unshift(introduction(target))
    }
    saved.untilSeconds = seconds.untilSeconds
    if (await segments.append('seconds', records)) return
    // Rows that the disk refused are still in the history, and are part of the next save.
    saved.untilSeconds = Math.min(saved.untilSeconds, before)
    saved.introducedMs = -Infinity
  }

  /**
   * Saves a block, and then removes it from memory.
   * @param {Segments} segments
   * @param {import('@memwatch/engine/history/target').Target} target
   * @param {import('@memwatch/engine/history/flight').SealedBlock} block
   */
  async #saveBlock (segments, target, block) {
    const places = await segments.append(`step${block.stepSeconds}`, [blockRecord(target, block)])
    if (!places) return
    const [place] = places
    block.read = () => segments.readAt(place)
    block.packed = undefined
  }

  /** Drops blocks if too many have to stay in memory: the finest and oldest first. */
  #bound () {
    const held = this.#targets.all.flatMap(({ flight, hello }) =>
      flight.sealed
        .filter(({ packed }) => packed)
        .map(block => ({ flight, block, atUnixMs: hello.startedAtUnixMs + 1000 * block.from }))
    )
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

module.exports = { FlightRecorder }
