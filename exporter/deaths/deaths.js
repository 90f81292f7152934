'use strict'

const { gzipSync, gunzipSync } = require('node:zlib')
const { findCase } = require('@memwatch/engine/verdicts/case')
const { shortText } = require('@memwatch/engine/text/suspect-text')
const { primaryOf } = require('@memwatch/engine/verdicts/urgency')
const { parseBounded } = require('../data-folder/bounded-json')
const { rebuild } = require('../data-folder/contract')
const { exactBuffer } = require('@memwatch/engine/history/exact-buffer')
const { pasteLine } = require('@memwatch/engine/fixes/paste-line')
const { withoutSnapshot } = require('./advise')
const { reasons } = require('./reasons')
const { deathWithMinutes } = require('./schema')

/**
 * Reasons of deaths of processes that ran out of memory.
 * @type {import('./reasons').ReasonName[]}
 */
const RAN_OUT = ['heap_oom', 'oom_kill']
/** Upper bound of stored deaths, each with its last minutes. */
const MAX_DEATHS = 100
const MINUTES = /** @type {any} */ (deathWithMinutes).properties.lastMinutes
/** Size limit of the last minutes: larger than ten minutes of all tracks. */
const MAX_MINUTES_BYTES = 4 * 2 ** 20
/** Upper bound of names with counted exits; the name with the oldest death is removed first. */
const MAX_NAMES = 1000

/**
 * A death, as /api/v1/deaths returns it.
 * @typedef {object} Death
 * @property {string} id
 * @property {string} target
 * @property {string} thread
 * @property {number} pid
 * @property {string | null} host
 * @property {string} node
 * @property {number} startedAtUnixMs
 * @property {number} diedAtUnixMs time at which its end was detected
 * @property {number} lastFrameUnixMs
 * @property {import('./reasons').ReasonName} reason
 * @property {'certain' | 'likely' | 'possible'} sure
 * @property {string} text one sentence
 * @property {number | null} exitCode
 * @property {string | null} signal
 * @property {{ diagnosis: string, summary: string, fix: string } | null} verdict the primary
 *   verdict at its end
 * @property {string | null} [advice] advice, if no verdict contains one; absent in deaths of older
 *   exporters
 * @property {string | null} suspects suspects of the last heap profile, for a process that ran out
 *   of memory
 * @property {import('@memwatch/engine/verdicts/holders').Holders | null} [holders] holders of piles
 *   in a heap snapshot that V8 wrote before the death; null without a snapshot, or while it is
 *   analysed
 *
 * @typedef {import('@memwatch/engine/history/target').LastMinutes} LastMinutes
 */

/**
 * @param {import('@memwatch/engine/history/target').Target} target
 * @param {object} end
 * @param {number} end.diedAtUnixMs
 * @param {import('./explain').Explanation} end.explanation
 * @param {number | null} [end.exitCode]
 * @param {string | null} [end.signal]
 * @param {string | null} [end.advice]
 * @returns {Death}
 */
function deathOf (
  target,
  { diedAtUnixMs, explanation, exitCode = null, signal = null, advice = null }
) {
  const { hello, name, thread, frame } = target
  const { suspects, verdicts } = findCase(target)
  const verdict = primaryOf(verdicts)
  const ranOut = RAN_OUT.includes(explanation.reason)
  return {
    id: `${diedAtUnixMs}-${hello.pid}-${hello.threadId}`,
    target: name,
    thread,
    pid: hello.pid,
    host: hello.host ?? null,
    node: hello.node,
    startedAtUnixMs: hello.startedAtUnixMs,
    diedAtUnixMs,
    lastFrameUnixMs: frame?.atUnixMs ?? hello.startedAtUnixMs + 1000 * target.lastSeconds,
    ...explanation,
    exitCode,
    signal,
    advice: verdict ? null : advice,
    suspects: ranOut ? lastProfileText(suspects) : null,
    verdict: verdict && {
      diagnosis: verdict.diagnosis,
      summary: verdict.summary,
      fix: pasteLine(verdict.fix[0])
    },
    holders: null
  }
}

/**
 * @param {import('@memwatch/engine/verdicts/case').Case['suspects']} suspects
 * @returns {string | null} text with the suspects of the last heap profile
 */
function lastProfileText (suspects) {
  const [last] = [...suspects.values()]
    .filter(({ kind }) => kind === 'heap_profile')
    .sort((a, b) => b.atUnixMs - a.atUnixMs)
  return shortText(last?.suspects ?? null) || null
}

/** Stores deaths with their causes, and counts them. */
class Deaths {
  /**
   * Stored deaths, the newest last. Ten minutes of tracks are 250 KB of JSON, and a tenth of that
   * when compressed.
   * @type {{ death: Death, lastMinutes: Buffer }[]}
   */
  #kept = []
  /**
   * @type {Map<string, { counts: Map<import('./reasons').ReasonName, number>, last: Death |
   *   undefined }>} exits by target and thread
   */
  #byName = new Map()

  /**
   * @param {Death} death
   * @param {LastMinutes} lastMinutes
   * @returns {Buffer} the last minutes, packed: see restore
   */
  add (death, lastMinutes) {
    const packed = exactBuffer(gzipSync(JSON.stringify(lastMinutes)))
    this.restore(death, packed)
    return packed
  }

  /**
   * Restores a death that an earlier exporter stored.
   * @param {Death} death
   * @param {Buffer} lastMinutes packed
   */
  restore (death, lastMinutes) {
    this.#kept.push({ death, lastMinutes })
    if (this.#kept.length > MAX_DEATHS) this.#kept.shift()
    const key = JSON.stringify([death.target, death.thread])
    const known = this.#byName.get(key)
    const counts = known?.counts ?? new Map()
    counts.set(death.reason, (counts.get(death.reason) ?? 0) + 1)
    this.#byName.delete(key)
    this.#byName.set(key, { counts, last: death })
    if (this.#byName.size > MAX_NAMES) this.#byName.delete(/** @type {string} */ (this.#byName.keys().next().value))
  }

  /**
   * Adds the analysis of a heap snapshot to a death.
   * @param {string} id
   * @param {NonNullable<Death['holders']>} holders
   */
  explain (id, holders) {
    const death = this.#kept.find(kept => kept.death.id === id)?.death
    if (!death) return
    death.holders = holders
    if (holders.piles.length > 0) death.advice = withoutSnapshot(death.advice)
  }

  /**
   * Adds the suspects of a heap profile that ended with the process.
   * @param {string} id
   * @param {import('@memwatch/engine/history/target').Target} target
   */
  point (id, target) {
    const death = this.#kept.find(kept => kept.death.id === id)?.death
    if (death && RAN_OUT.includes(death.reason)) {
      death.suspects = lastProfileText(findCase(target).suspects)
    }
  }

  /**
   * Retracts a death. Its count stays, because a counter that falls looks like a restarted counter.
   * @param {string} id
   */
  retract (id) {
    this.#kept = this.#kept.filter(({ death }) => death.id !== id)
    for (const known of this.#byName.values()) if (known.last?.id === id) known.last = undefined
  }

  /** Newest first. @returns {Death[]} */
  get all () {
    return this.#kept.map(({ death }) => death).reverse()
  }

  /**
   * @param {string} id
   * @returns {{ death: Death, lastMinutes: LastMinutes } | undefined}
   */
  find (id) {
    const kept = this.#kept.find(({ death }) => death.id === id)
    return kept && { death: kept.death, lastMinutes: unpackMinutes(kept.lastMinutes) }
  }

  /**
   * Counts exits by reason. For each reason with an alert, living targets begin at 0, because a
   * counter that begins at 1 shows no increase.
   * @param {Iterable<{ name: string, thread: string }>} targets all watched targets
   * @returns
   *   {{ target: string, thread: string, reason: import('./reasons').ReasonName, count: number }[]}
   */
  exits (targets) {
    const rows = []
    const names = new Set(this.#byName.keys())
    for (const { name, thread } of targets) {
      if (thread === 'main') names.add(JSON.stringify([name, thread]))
    }
    for (const key of names) {
      const [target, thread] = JSON.parse(key)
      const counts = this.#byName.get(key)?.counts
      for (const [reason, { counted }] of /** @type {[import('./reasons').ReasonName, import('./reasons').Reason][]} */ (Object.entries(reasons))) {
        const count = counts?.get(reason)
        if (count !== undefined || (counted && thread === 'main')) {
          rows.push({ target, thread, reason, count: count ?? 0 })
        }
      }
    }
    return rows
  }

  /** The last death of each name. @returns {Death[]} */
  get lastOfEach () {
    return [...this.#byName.values()].flatMap(({ last }) => last ?? [])
  }
}

/**
 * @param {Buffer} packed packed tracks, from a folder to which other users may be able to write
 * @returns {LastMinutes} tracks; empty if they cannot be read
 */
function unpackMinutes (packed) {
  try {
    const minutes = parseBounded(
      gunzipSync(packed, { maxOutputLength: MAX_MINUTES_BYTES }).toString()
    )
    return rebuild(MINUTES, minutes) ?? { secondsBefore: [], tracks: {} }
  } catch {
    return { secondsBefore: [], tracks: {} }
  }
}

module.exports = { RAN_OUT, deathOf, Deaths, MAX_DEATHS }
