'use strict'

const fs = require('node:fs')
const { attach, detach } = require('@memwatch/exporter/attachment/attachment')
const { Refusal } = require('@memwatch/exporter/attachment/refusal')
const {
  privateExporter, startExporter, collectTargets, makeSocketFolder, farewell
} = require('./watch-command')

/** Interval at which memwatch checks if the process still runs. */
const POLL_MS = 200

/** @typedef {import('@memwatch/exporter/exporter').Exporter} Exporter */

/**
 * Attaches to a running process, evaluates its frames in an exporter for this watch, and detaches.
 *
 * @param {object} options
 * @param {import('@memwatch/exporter/attachment/subject').Subject} options.subject a checked
 *   process
 * @param {import('../attachment/options').AttachOptions} options.given
 * @param {number} [options.forSeconds] default: until the process ends, or the abort
 * @param {AbortSignal} options.abort ends the watch, not the process
 * @param {{ host: string, port: number }} [options.listen] address on which metrics are served
 *   during the watch
 * @param {string} [options.record] file to write a recording to
 * @param {(exporter: Exporter, listen: { host: string, port: number }) => void} [options.onStart]
 * @param {(exporter: Exporter) => Promise<void>} [options.onWatched] awaited before the agent stops
 * @param {(exporter: Exporter, report: import('./watch-command').Report) => Promise<void>}
 *   [options.onReport] awaited before the exporter stops and deletes captures
 * @returns {Promise<{ report: import('./watch-command').Report, notDetached?: string }>}
 *   notDetached: reason why the agent could not be detached
 * @throws {Refusal}
 */
async function watchProcess ({
  subject,
  given,
  forSeconds,
  abort,
  listen = { host: '127.0.0.1', port: 0 },
  record,
  onStart,
  onWatched,
  onReport
}) {
  const shown = subject.command
  const { folder, socket } = makeSocketFolder(
    subject.sharesNamespace('mnt') ? undefined : subject.outside('/tmp')
  )
  const exporter = privateExporter({ listen, socket, record, shown })
  const targetsSoFar = collectTargets(exporter)
  /** @type {import('@memwatch/engine/recording/format').End | undefined} */
  let end
  try {
    const { listen: at } = await startExporter(exporter)
    onStart?.(exporter, at)
    openTo(subject, [folder, socket])
    const { workers } = await attach(subject, {
      socket: subject.inside(socket),
      folder: given.agent,
      allowForcedGc: given.allowForcedGc
    })
    const atUnixMs = Date.now()
    await untilOver(subject, { forSeconds, abort })
    if (subject.isSame()) await onWatched?.(exporter)
    const targets = subject.isSame() ? targetsSoFar() : undefined
    const { notDetached } = await tryDetach(subject)
    await farewell(exporter)
    await Promise.race([exporter.analysed(), aborted(abort)])
    const durationSeconds = (Date.now() - atUnixMs) / 1000
    const exit = { code: null, signal: null }
    end = { durationSeconds, exit }
    /** @type {import('./watch-command').Report} */
    const report = {
      schema: 1,
      command: shown,
      durationSeconds,
      exit,
      attached: {
        pid: subject.pid,
        startedAtUnixMs: Math.round(subject.startedAtUnixMs),
        atUnixMs,
        ended: !subject.isSame(),
        workers
      },
      targets: targets ?? targetsSoFar(),
      deaths: exporter.deaths
    }
    await onReport?.(exporter, report)
    return { report, notDetached }
  } finally {
    await exporter.stop(end)
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * If this process runs as root, makes the user of the watched process the owner of the files, so
 * that its agent can connect to the socket.
 * @param {import('@memwatch/exporter/attachment/subject').Subject} subject
 * @param {string[]} files
 */
function openTo ({ user, groups: [group] }, files) {
  if (process.geteuid?.() !== 0 || user === undefined || user === 0) return
  for (const file of files) fs.chownSync(file, user, group)
}

/**
 * @param {import('@memwatch/exporter/attachment/subject').Subject} subject
 * @param {{ forSeconds?: number, abort: AbortSignal }} until
 * @returns {Promise<void>} resolves after the time, an abort, or the end of the process
 */
const untilOver = (subject, { forSeconds, abort }) => new Promise(resolve => {
  const timers = [setInterval(() => { if (!subject.isSame()) over() }, POLL_MS)]
  if (forSeconds !== undefined) timers.push(setTimeout(over, forSeconds * 1000))
  function over () {
    timers.forEach(clearTimeout)
    abort.removeEventListener('abort', over)
    resolve()
  }
  if (abort.aborted) over()
  else abort.addEventListener('abort', over)
})

/**
 * Resolves at an abort.
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
const aborted = signal => new Promise(resolve => {
  if (signal.aborted) resolve()
  else signal.addEventListener('abort', () => resolve(), { once: true })
})

/**
 * @param {import('@memwatch/exporter/attachment/subject').Subject} subject
 * @returns {Promise<{ notDetached?: string }>}
 */
async function tryDetach (subject) {
  try {
    if (subject.isSame()) await detach(subject)
    return {}
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return subject.isSame() ? { notDetached: error.message } : {}
  }
}

module.exports = { watchProcess }
