'use strict'

const { setTimeout: wait } = require('node:timers/promises')
const { Command } = require('commander')
const { formatBytes, formatRatio } = require('@memwatch/engine/text/format')
const { sparkline } = require('./text/sparkline')
const { printable } = require('@memwatch/engine/text/printable')
const { withApiOptions, callApi, callList, pathSegment } = require('./api')
const { SEVERITIES } = require('@memwatch/engine/diagnoses/define-diagnosis')
const { HEADLINE_STATES } = require('@memwatch/engine/verdicts/headline')
const { out } = require('./output')
const { UsageError, readSeconds } = require('./usage-error')

const CTRL_C = String.fromCharCode(3)
/** Columns of the time that a sparkline shows. */
const SPARK_SECONDS = 300
const SPARK_WIDTH = 24
/** Series are asked for target by target: of no more than are seen. */
const MOST_SPARKS = 50
/** The share of time that the event loop was busy is that of the last so many seconds. */
const LOOP_SECONDS = 10

const command = withApiOptions(new Command('top'))
  .description(
    'List the targets of an exporter, worst first: memory, GC, event loop, verdict.'
  )
  .option('--every <TIME>', 'time between two refreshes, as 2 or 30s', parseSeconds, 2)
  .option('--once', 'print once and exit (default if stdout is no terminal)')
  .allowExcessArguments(false)
  .addHelpText(
    'after',
    `
The bars are RSS over five minutes. q or Ctrl-C ends it.

Exit status: 0; 2 when the exporter cannot be reached.

Examples:
  $ memwatch top
  $ memwatch top --once | grep -v Healthy
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
 * @property {string} name target, and thread where it is not the main one
 * @property {any} values the newest
 * @property {(number | null)[]} rss oldest first
 * @property {number | undefined} loopRatio share of time that the event loop was busy
 * @property {import('@memwatch/engine/verdicts/headline').Headline} [headline] undefined where the target ended
 *   between two requests
 * @property {boolean} up
 * @property {string | null} silence
 */

/** @param {import('./api').ApiOptions & { every: number, once?: boolean }} given */
async function top (given) {
  if (given.once || !out.isTerminal) {
    out.say(...render(await look(given), { width: out.columns ?? Infinity }))
    return
  }
  const over = new AbortController()
  const stop = () => over.abort()
  process.once('SIGINT', stop).once('SIGTERM', stop)
  if (process.stdin.isTTY) {
    process.stdin.setRawMode(true).on('data', key => {
      if (['q', CTRL_C].includes(String(key)[0])) stop()
    })
  }
  // an exporter that is not there is said before the screen is taken
  const first = await look(given)
  out.screen(true)
  try {
    for (let rows = first; !over.signal.aborted; rows = await look(given)) {
      out.redrawScreen(render(rows, { width: out.columns ?? Infinity }))
      await wait(1000 * given.every, undefined, { signal: over.signal }).catch(() => {})
    }
  } finally {
    out.screen(false)
    if (process.stdin.isTTY) process.stdin.setRawMode(false).pause()
  }
}

/**
 * @param {import('./api').ApiOptions} given
 * @returns {Promise<Row[]>} worst first
 */
async function look (given) {
  const [targets, diagnoses] = await Promise.all(
    ['targets', 'diagnoses'].map(path => callList(given, path))
  )
  const rows = targets.map(target => {
    const judged = diagnoses.find(({ target: name, thread, pid }) =>
      name === target.target && thread === target.thread && pid === target.pid)
    return {
      target,
      name: target.thread === 'main' ? target.target : `${target.target} ${target.thread}`,
      values: target.values,
      rss: /** @type {(number | null)[]} */ ([]),
      loopRatio: /** @type {number | undefined} */ (undefined),
      headline: judged?.headline,
      up: target.up,
      silence: target.silence
    }
  })
  rows.sort(
    (a, b) =>
      rankOf(a) - rankOf(b) ||
      (b.values.rssBytes ?? 0) - (a.values.rssBytes ?? 0) ||
      (a.name < b.name ? -1 : 1)
  )
  await Promise.all(rows.slice(0, MOST_SPARKS).map(async row => {
    const { target: name, thread } = row.target
    const query = new URLSearchParams([
      ['track', 'rssBytes'],
      ['track', 'eventLoopActiveSeconds'],
      ['thread', thread],
      ['seconds', String(SPARK_SECONDS)]
    ])
    const { times = [], tracks } = (
      await callApi(given, `targets/${pathSegment(name)}/series?${query}`)
    ).body
    row.rss = tracks?.rssBytes.last ?? [] // it may have ended meanwhile
    const since = times.findIndex((/** @type {number} */ time) => time >= times.at(-1) - LOOP_SECONDS)
    const active = tracks?.eventLoopActiveSeconds.last
    if (since >= 0 && since < times.length - 1) {
      row.loopRatio = (active.at(-1) - active[since]) / (times.at(-1) - times[since])
    }
  }))
  return rows
}

/**
 * Critical before warning, confirmed before suspected, and the silent before the undecided and
 * the healthy.
 * @param {Pick<Row, 'headline' | 'silence'>} row
 */
function rankOf ({ headline, silence }) {
  const { state = 'undecided', severity = null } = headline ?? {}
  if (severity !== null) return 2 * SEVERITIES.indexOf(severity) + (state === 'confirmed' ? 0 : 1)
  return silence ? 20 : 30 + HEADLINE_STATES.indexOf(state)
}

/**
 * @param {Row[]} rows
 * @param {{ width: number }} options
 * @returns {import('./text/terminal').Line[]}
 */
function render (rows, { width }) {
  if (rows.length === 0) return ['No target: start an app with node -r memwatch/agent.']
  const heads = ['target', 'RSS', 'of limit', 'heap', 'loop', 'RSS, 5 min']
  const cells = rows.map(({ name, values, rss, loopRatio }) => [
    printable(name),
    values.rssBytes === undefined ? '' : formatBytes(values.rssBytes),
    values.rssBytes === undefined || values.containerLimitBytes === undefined
      ? ''
      : formatRatio(values.rssBytes / values.containerLimitBytes),
    values.heapUsedBytes === undefined ? '' : formatBytes(values.heapUsedBytes),
    loopRatio === undefined ? '' : formatRatio(loopRatio),
    sparkline(rss, SPARK_WIDTH)
  ])
  const widths = heads.map((head, i) => Math.max(head.length, ...cells.map(row => row[i].length)))
  const line = (/** @type {string[]} */ row) => row.map((cell, i) => i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i])).join('  ')
  const cut = (/** @type {string} */ text) => text.length > width ? text.slice(0, width - 1) + '…' : text
  return [
    cut(`${line(heads)}  verdict`),
    ...rows.map((row, i) => styled(cut(`${line(cells[i])}  ${printable(sentence(row))}`), row))
  ]
}

/** @param {Row} row */
function sentence ({ headline, up, silence }) {
  const text = headline?.text ?? ''
  if (silence) return `Silent (${silence}). ${text}`
  return up ? text : `Gone. ${text}`
}

/**
 * @param {string} text
 * @param {Row} row
 * @returns {import('./text/terminal').Line}
 */
function styled (text, { headline }) {
  if (headline?.severity == null) return text
  return { text, style: headline.state === 'confirmed' ? 'red' : 'yellow' }
}

module.exports = { command, render }
