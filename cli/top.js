'use strict'

const { setTimeout: wait } = require('node:timers/promises')
const { Command } = require('commander')
const { withApiOptions, callApi, callList } = require('./program/api')
const { pathSegment } = require('./text/path-segment')
const { TopView } = require('./top/top-view')
const { rankHeadline } = require('@memwatch/engine/verdicts/headline')
const { out } = require('./program/output')
const { UsageError, readSeconds } = require('./program/usage-error')

/** Time shown in a sparkline. */
const SPARK_SECONDS = 300
/** Upper bound of targets whose series are requested, because each needs its own request. */
const MOST_SPARKS = 50
/** Window over which the shares of event loop time and GC time are computed. */
const SHARE_SECONDS = 10
const TRACKS = ['rssBytes', 'eventLoopActiveSeconds', 'gcPauseSeconds']
/** Page size of /api/v1/deaths. */
const MOST_DEATHS = 100

const command = withApiOptions(new Command('top'))
  .description(
    'List the targets of an exporter, worst first: memory, GC, event loop, verdict.'
  )
  .option('--every <TIME>', 'time between two refreshes, such as 2 or 30s', parseSeconds, 2)
  .option('--once', 'print once and exit (default if stdout is no terminal)')
  .allowExcessArguments(false)
  .addHelpText(
    'after',
    `
The bars are RSS over five minutes. Symbols: ! confirmed, ~ suspected, ? undecided, ✓ ruled out.
Keys: j k or arrows select, Enter opens, / filters, s sorts, ? lists all keys, q ends.

Exit status: 0; 2 when the exporter cannot be reached.

Examples:
  $ memwatch top
  $ memwatch top --once | grep -v ✓
  $ memwatch top --url http://10.0.0.7:16369 --token-file token`
  )
  .action(async given => {
    await top(given)
  })

/**
 * @param {string} text
 * @returns {number}
 */
function parseSeconds (text) {
  const seconds = readSeconds('--every', text)
  if (!(seconds >= 0.5 && seconds <= 3600)) {
    throw new UsageError(`--every: expected a time from 0.5s to 1h, got ${JSON.stringify(text)}`)
  }
  return seconds
}

/**
 * @typedef {object} Row
 * @property {any} target target in the form of /api/v1/targets
 * @property {any} [judged] verdicts in the form of /api/v1/diagnoses; undefined if the target ended
 *   between two requests
 * @property {string} name name of the target, with the thread if it is not the main thread
 * @property {any} values newest values
 * @property {(number | null)[]} rss RSS over time, oldest first
 * @property {number | undefined} loopRatio share of time in which the event loop was busy
 * @property {number | undefined} gcRatio share of time in GC pauses
 * @property {import('@memwatch/engine/verdicts/headline').Headline} [headline]
 * @property {boolean} up
 * @property {string | null} silence
 * @property {string} [death] reason of its end
 */

/** @param {import('./program/api').ApiOptions & { every: number, once?: boolean }} given */
async function top (given) {
  const view = new TopView(new URL(given.url).origin)
  const size = () => ({ width: out.columns ?? Infinity, height: out.rows ?? Infinity })
  if (given.once || !out.isTerminal) {
    view.rows = await ask(given)
    out.say(...view.render({ ...size(), height: Infinity }))
    return
  }
  const over = new AbortController()
  const stop = () => over.abort()
  process.once('SIGINT', stop).once('SIGTERM', stop)
  // The error of an exporter that does not answer is printed before the screen is cleared.
  view.rows = await ask(given)
  const redraw = () => out.redrawScreen(view.render(size()))
  if (process.stdin.isTTY) {
    process.stdin.setRawMode(true).setEncoding('utf8').on('data', keys => {
      if (view.press(String(keys))) redraw()
      else stop()
    })
  }
  process.on('SIGWINCH', redraw)
  out.screen(true)
  try {
    while (!over.signal.aborted) {
      redraw()
      await wait(1000 * given.every, undefined, { signal: over.signal }).catch(() => {})
      if (!over.signal.aborted) view.rows = await ask(given)
    }
  } finally {
    process.off('SIGWINCH', redraw)
    out.screen(false)
    if (process.stdin.isTTY) process.stdin.setRawMode(false).pause()
  }
}

/**
 * @param {import('./program/api').ApiOptions} given
 * @returns {Promise<Row[]>} rows, worst first
 */
async function ask (given) {
  const [targets, diagnoses] = await Promise.all(
    ['targets', 'diagnoses'].map(path => callList(given, path))
  )
  const deaths = targets.every(({ up }) => up)
    ? []
    : (await callApi(given, `deaths?limit=${MOST_DEATHS}`)).body
  const rows = targets.map(target => {
    const isOf = (/** @type {any} */ { target: name, thread, pid }) =>
      name === target.target && thread === target.thread && pid === target.pid
    const judged = diagnoses.find(isOf)
    return {
      target,
      judged,
      name: target.thread === 'main' ? target.target : `${target.target} ${target.thread}`,
      values: target.values,
      rss: /** @type {(number | null)[]} */ ([]),
      loopRatio: /** @type {number | undefined} */ (undefined),
      gcRatio: /** @type {number | undefined} */ (undefined),
      headline: judged?.headline,
      up: target.up,
      silence: target.silence,
      death: Array.isArray(deaths) ? deaths.find(isOf)?.reason.replaceAll('_', ' ') : undefined
    }
  })
  rows.sort(
    (a, b) =>
      rankHeadline(a) - rankHeadline(b) ||
      (b.values.rssBytes ?? 0) - (a.values.rssBytes ?? 0) ||
      (a.name < b.name ? -1 : 1)
  )
  await Promise.all(rows.slice(0, MOST_SPARKS).map(row => askSeries(given, row)))
  return rows
}

/**
 * @param {import('./program/api').ApiOptions} given
 * @param {Row} row
 */
async function askSeries (given, row) {
  const { target: name, thread } = row.target
  const query = new URLSearchParams([
    ...TRACKS.map(track => /** @type {[string, string]} */ (['track', track])),
    ['thread', thread],
    ['seconds', String(SPARK_SECONDS)]
  ])
  const { times = [], tracks } = (
    await callApi(given, `targets/${pathSegment(name)}/series?${query}`)
  ).body
  row.rss = tracks?.rssBytes.last ?? [] // The target may have ended meanwhile.
  const since = times.findIndex((/** @type {number} */ time) =>
    time >= times.at(-1) - SHARE_SECONDS)
  if (since < 0 || since === times.length - 1) return
  const shareOf = (/** @type {string} */ track) =>
    (tracks[track].last.at(-1) - tracks[track].last[since]) / (times.at(-1) - times[since])
  row.loopRatio = shareOf('eventLoopActiveSeconds')
  row.gcRatio = shareOf('gcPauseSeconds')
}

module.exports = { command }
