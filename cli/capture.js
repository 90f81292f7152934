'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { setTimeout: wait } = require('node:timers/promises')
const { Readable } = require('node:stream')
const { pipeline } = require('node:stream/promises')
const { Command, Argument } = require('commander')
const { kinds } = require('@memwatch/exporter/captures/kinds')
const { flamePath } = require('@memwatch/exporter/expose/flame')
const { formatBytes, formatSeconds } = require('@memwatch/engine/text/format')
const { packagesText } = require('@memwatch/engine/text/suspect-text')
const { withApiOptions, callApi, openApi } = require('./program/api')
const { pathSegment } = require('./text/path-segment')
const { out, err } = require('./program/output')
const { wrap } = require('./text/wrap')
const { UsageError, readSeconds } = require('./program/usage-error')

const POLL_MS = 250
/** Time limit of the wait for another capture; the longest capture takes a minute. */
const WAIT_FOR_OTHER_MS = 90_000

const command = withApiOptions(new Command('capture'))
  .description('Profile a running app, and name the lines of code that stand out.')
  .argument('<target>', 'name of the target, as memwatch top lists it')
  .addArgument(new Argument('<kind>', 'what to capture').choices(Object.keys(kinds)))
  .option('--seconds <TIME>', 'duration of the capture, such as 10, 10s or 1m',
    text => readSeconds('--seconds', text))
  .option('--thread <THREAD>', 'main, or a worker such as worker-1', 'main')
  .option('--force', 'take a heap snapshot even if that could kill the process')
  .option('--out <FILE>', 'write the capture to this file')
  .option('--pprof', 'with --out: write a profile in the format of pprof')
  .option('--json', 'print the capture as JSON on stdout, and nothing else')
  .allowExcessArguments(false)
  .addHelpText(
    'after',
    `
Kinds
${Object.entries(kinds)
  .map(
    ([kind, { title, seconds, help }]) =>
      `  ${kind.padEnd(19)}${title}${seconds ? ` (${seconds} s)` : ''}\n` +
        wrap(help, 98, 21).join('\n')
  )
  .join('\n')}

Exit status: 0; 1 when the capture was refused or failed; 2 when the exporter cannot be reached or
the target does not exist.

Examples:
  $ memwatch capture shop heap_profile
  $ memwatch capture shop cpu_profile --seconds 10 --out shop.cpuprofile
  $ memwatch capture shop cpu_profile --pprof --out shop.pb.gz
  $ memwatch capture shop heap_profile --thread worker-1 --json | jq .suspects.sites`
  )
  .action(async (target, kind, given) => {
    process.exitCode = await capture(target, kind, given)
  })

/**
 * @param {string} target
 * @param {import('@memwatch/exporter/captures/kinds').KindName} kind
 * @param {import('./program/api').ApiOptions & { seconds?: number, thread: string, force?: boolean, out?:
 *   string, pprof?: boolean, json?: boolean }} given
 * @returns {Promise<number>} exit status
 */
async function capture (target, kind, given) {
  if (given.pprof && !given.out) {
    throw new UsageError('--pprof: expected --out FILE for the profile, got none')
  }
  const query = new URLSearchParams({
    kind,
    thread: given.thread,
    ...(given.seconds && { seconds: String(given.seconds) }),
    ...(given.force && { force: 'true' })
  })
  const asked = await ask(given, `targets/${pathSegment(target)}/captures?${query}`)
  if (asked.refused) return refused(asked)
  const { id, seconds } = asked.body
  const progress = given.json ? () => {} : progressOf(`${kind} of ${target}`, seconds)
  let found = asked.body
  for (
    const began = performance.now();
    found.state === 'running';
    found = (await callApi(given, `captures/${id}`)).body
  ) {
    progress((performance.now() - began) / 1000)
    await wait(POLL_MS)
  }
  progress()
  if (found.state !== 'done') return refused({ refused: found.error ?? 'the exporter lost it' })
  if (given.out) await save(found, given.out, given)
  if (given.json) out.json(found)
  else out.say(...render(found, given.url))
  return 0
}

/**
 * Requests a capture. A process runs one capture at a time, and the exporter starts some
 * automatically, so the request is repeated until they have ended.
 * @param {import('./program/api').ApiOptions & { json?: boolean }} given
 * @param {string} path below /api/v1/
 * @returns {ReturnType<typeof callApi>} the refusal of the last attempt, if no capture was accepted
 */
async function ask (given, path) {
  const began = performance.now()
  for (let waits = false; ; waits = true) {
    const asked = await callApi(given, path, 'POST')
    const isBusy = asked.refused && asked.body.code === 'busy'
    if (!isBusy || performance.now() - began > WAIT_FOR_OTHER_MS) return asked
    if (!waits && !given.json) err.say('memwatch capture: waiting for another capture of this process to end')
    await wait(POLL_MS)
  }
}

/**
 * @param {any} capture
 * @param {string} file
 * @param {import('./program/api').ApiOptions & { pprof?: boolean, json?: boolean }} given
 */
async function save ({ id, parts }, file, given) {
  const { part } = parts[parts.length - 1]
  const { body, refused } = await openApi(
    given,
    `captures/${id}/${part}${given.pprof ? '?format=pprof' : ''}`
  )
  if (refused) throw new UsageError(refused)
  try {
    await pipeline(Readable.fromWeb(body), fs.createWriteStream(file, { mode: 0o600 }))
  } catch (error) {
    throw new UsageError(`--out: ${/** @type {Error} */ (error).message}`)
  }
  if (!given.json) {
    err.say(`memwatch capture: ${path.resolve(file)}, ${formatBytes(fs.statSync(file).size)}`)
  }
}

/**
 * @param {any} capture
 * @param {string} url of the exporter
 * @returns {string[]} lines
 */
function render (capture, url) {
  const { id, kind, parts, suspects, retainers } = capture
  const bytes = parts.reduce((/** @type {number} */ sum, /** @type {{ bytes: number }} */ part) => sum + part.bytes, 0)
  const lines = [
    `${kind} ${id}, ${bytes < 2 ** 20 ? `${Math.ceil(bytes / 1024)} KiB` : formatBytes(bytes)}`
  ]
  if (suspects?.sites.length === 0) lines.push('Nothing stands out.')
  for (const { text } of suspects?.sites ?? []) lines.push(`  ${text}`)
  const packages = packagesText((suspects ?? retainers)?.packages)
  if (retainers?.refused) lines.push(`The holders were not analysed: ${retainers.refused}`)
  for (const { text } of retainers?.piles ?? []) lines.push(`  ${text}`)
  if (packages) lines.push(`By package: ${packages}`)
  const flame = flamePath(capture)
  if (flame) lines.push(`Flame graph: ${url.replace(/\/$/, '')}${flame}`)
  return lines
}

/**
 * Prints the progress on a terminal.
 * @param {string} what
 * @param {number} seconds
 * @returns {(elapsedSeconds?: number) => void} prints the progress; without a time,
 *   it clears the line, because the capture has ended
 */
function progressOf (what, seconds) {
  return elapsed => {
    if (elapsed === undefined) err.clear()
    else {
      err.redraw(
        `memwatch capture: ${what}, ` +
          `${formatSeconds(Math.floor(elapsed))}${seconds ? ` of about ${formatSeconds(seconds)}` : ''}`
      )
    }
  }
}

/**
 * @param {{ refused?: string, status?: number }} answer
 * @returns {number} exit status
 * @throws {UsageError}
 */
function refused ({ refused = '', status }) {
  if (status === 404 || status === 400) throw new UsageError(refused)
  err.say(`memwatch capture: ${refused}`)
  return 1
}

module.exports = { command }
