'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { RecordingError } = require('@memwatch/engine/recording/replay')
const { findCase } = require('@memwatch/engine/verdicts/case')
const { primaryOf } = require('@memwatch/engine/verdicts/urgency')
const { replayFile } = require('../sources/replay-file')
const { Gathered } = require('./gathered')
const { readFigures } = require('./figures')

/**
 * Figures of one run, from its recording.
 * @typedef {object} Run
 * @property {string} file
 * @property {string[]} command
 * @property {{ code: number | null, signal: string | null } | null} exit exit of the command; null
 *   if the recording does not contain it
 * @property {boolean} cut true if the recording is incomplete
 * @property {import('@memwatch/engine/recording/format').Work} work
 * @property {import('@memwatch/engine/history/target').Target | null} target the compared target;
 *   null if no process reported
 * @property {Record<import('./figures').FigureName, number | null>} figures
 */

/** Names of recordings in a folder. */
const RECORDING = /\.(ndjson|recording)(\.gz)?$/

/**
 * @param {string} file
 * @param {object} [options]
 * @param {{ name: string, thread: string }} [options.like] target to compare; default: the one with
 *   a primary verdict, else the main thread that used most CPU
 * @param {string} [options.diagnosis] diagnosis to use instead of the primary verdict, confirmed or
 *   suspected
 * @param {import('@memwatch/engine/recording/format').Work} [options.work] work of the run, if the
 *   recording lacks it
 * @param {(share: number) => void} [options.onProgress]
 * @returns {Promise<Run>}
 * @throws {RecordingError} if the file is not a recording; SourceError if it is unreadable
 */
async function measure (file, { like, diagnosis, work, onProgress } = {}) {
  /** @type {Map<import('@memwatch/engine/history/target').Target, Gathered>} */
  const gathered = new Map()
  const { header, end, targets, cut } = await replayFile(file, {
    onProgress,
    onFrame: target => {
      let of = gathered.get(target)
      if (!of) gathered.set(target, of = new Gathered())
      of.take(target)
    }
  })
  const target = chosen(targets, like, diagnosis)
  const done = end?.work ?? work ?? {}
  return {
    file,
    command: header.command ?? [],
    exit: end?.exit ?? null,
    cut,
    work: done,
    target,
    figures: readFigures({
      gathered: (target && gathered.get(target)) ?? new Gathered(),
      values: target?.values ?? {},
      uptimeSeconds: target?.frame?.uptimeSeconds ?? NaN,
      work: done
    })
  }
}

/**
 * @param {import('@memwatch/engine/history/target').Target[]} targets
 * @param {{ name: string, thread: string }} [like]
 * @param {string} [diagnosis]
 * @returns {import('@memwatch/engine/history/target').Target | null}
 */
function chosen (targets, like, diagnosis) {
  const cpuSeconds = (/** @type {import('@memwatch/engine/history/target').Target} */ { values }) => (values.cpuUserSeconds ?? 0) + (values.cpuSystemSeconds ?? 0)
  const busiest = (/** @type {import('@memwatch/engine/history/target').Target[]} */ some) => some.toSorted((a, b) => cpuSeconds(b) - cpuSeconds(a))[0]
  const mains = targets.filter(({ thread }) => thread === 'main')
  if (like) {
    return (
      busiest(targets.filter(({ name, thread }) => name === like.name && thread === like.thread)) ??
      busiest(mains) ??
      null
    )
  }
  const ill = targets.filter(target => diagnosis
    ? findCase(target).verdicts.some(verdict =>
      verdict.diagnosis === diagnosis && ['suspected', 'confirmed'].includes(verdict.state))
    : primaryOf(findCase(target).verdicts))
  return busiest(ill.filter(({ thread }) => thread === 'main')) ?? ill[0] ?? busiest(mains) ?? null
}

/**
 * Recordings at a path: the file itself, or the recordings in a folder, sorted by name.
 * @param {string} at
 * @returns {string[]} at least one
 * @throws {RecordingError}
 */
function recordingsAt (at) {
  if (!fs.statSync(at, { throwIfNoEntry: false })?.isDirectory()) return [at]
  const names = fs
    .readdirSync(at)
    .filter(name => RECORDING.test(name))
    .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
  if (names.length === 0) {
    throw new RecordingError(
      `${at}: expected recordings, got no file that ends in .ndjson or .ndjson.gz`
    )
  }
  return names.map(name => path.join(at, name))
}

module.exports = { measure, recordingsAt }
