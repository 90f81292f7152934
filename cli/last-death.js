'use strict'

const { Command } = require('commander')
const { formatBytes, formatSeconds } = require('@memwatch/engine/text/format')
const { sourceText } = require('@memwatch/engine/text/suspect-text')
const { MOST_PILES } = require('@memwatch/engine/verdicts/holders')
const { reasons } = require('@memwatch/exporter/deaths/reasons')
const { withApiOptions, callApi } = require('./program/api')
const { pathSegment } = require('./text/path-segment')
const { out, err } = require('./program/output')
const { UsageError } = require('./program/usage-error')

/** Tracks that are printed for the minutes before a death. */
const SHOWN_TRACKS = /** @type {const} */ ({ rssBytes: 'RSS', heapUsedBytes: 'heap used', externalBytes: 'external' })
/** Seconds before the last frame that are printed. */
const SHOWN_SECONDS = [600, 300, 120, 60, 30, 10, 5, 2, 1, 0]

const command = withApiOptions(new Command('last-death'))
  .description('Print the cause of death of the last process of this name, and its memory before ' +
    'the death.')
  .argument('[target]', 'name of the target (default: the process that died last)')
  .option('--json', 'print the death with its last minutes as JSON on stdout, and nothing else')
  .allowExcessArguments(false)
  .addHelpText('after', `
Exit status: 0; 1 when no process has died; 2 when the exporter cannot be reached.

Examples:
  $ memwatch last-death
  $ memwatch last-death shop --json | jq .death.reason`)
  .action(async (target, given) => { process.exitCode = await lastDeath(target, given) })

/**
 * @param {string | undefined} target
 * @param {import('./program/api').ApiOptions & { json?: boolean }} given
 * @returns {Promise<number>} exit status
 */
async function lastDeath (target, given) {
  const listed = await callApi(
    given,
    `deaths?${new URLSearchParams({ limit: '1', ...(target !== undefined && { target }) })}`
  )
  if (listed.refused) throw new UsageError(listed.refused)
  const [last] = listed.body
  if (!last) {
    err.say(
      `memwatch last-death: the exporter has recorded no death${target === undefined
        ? ''
        : ` of ${target}`}`
    )
    return 1
  }
  const { body, refused } = await callApi(given, `deaths/${pathSegment(last.id)}`)
  if (refused) throw new UsageError(refused)
  if (given.json) out.json(body)
  else out.say(...render(body))
  return 0
}

/**
 * @param {{ death: import('@memwatch/exporter/deaths/deaths').Death, lastMinutes:
 *   import('@memwatch/exporter/deaths/deaths').LastMinutes }} kept
 * @returns {string[]} lines
 */
function render ({ death, lastMinutes }) {
  const {
    target,
    thread,
    pid,
    node,
    reason,
    sure,
    text,
    advice,
    suspects,
    holders,
    verdict,
    startedAtUnixMs,
    diedAtUnixMs
  } = death
  const lines = [
    `${target} ${thread}, pid ${pid}, Node ${node}: ${reasons[reason].title} (${reason}, ${sure})`,
    `${new Date(diedAtUnixMs).toISOString()}, after ` +
      `${formatSeconds((diedAtUnixMs - startedAtUnixMs) / 1000)}`,
    text
  ]
  if (advice) lines.push(advice)
  if (suspects) lines.push(`Suspects: ${suspects}`)
  if (holders) {
    lines.push(`Held, ${sourceText(holders)}`)
    if (holders.refused) lines.push(`  Not analysed: ${holders.refused}`)
    lines.push(...holders.piles.slice(0, MOST_PILES).map(({ text }) => `  ${text}`))
  }
  if (verdict) {
    lines.push(
      `Confirmed finding: ${verdict.diagnosis}. ${verdict.summary}`,
      `Fix: ${verdict.fix}`
    )
  }
  const rows = SHOWN_SECONDS.flatMap(seconds => {
    const at = lastMinutes.secondsBefore.findLastIndex(before => before >= seconds - 0.5)
    // The nearest row may be far older than the wanted time; then no value is printed.
    return at >= 0 && lastMinutes.secondsBefore[at] <= seconds + Math.max(5, seconds / 10)
      ? [{ seconds, at }]
      : []
  })
  if (rows.length > 0) {
    lines.push(
      '',
      ['before', ...Object.values(SHOWN_TRACKS)].map(head => head.padStart(11)).join('')
    )
    for (const { seconds, at } of rows) {
      const cells = Object.keys(SHOWN_TRACKS).map(track => {
        const value = lastMinutes.tracks[track]?.[at]
        return value == null ? '' : formatBytes(value)
      })
      lines.push([formatSeconds(seconds), ...cells].map(cell => cell.padStart(11)).join(''))
    }
  }
  return lines
}

module.exports = { command }
