'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { gzipSync } = require('node:zlib')
const { setTimeout: wait } = require('node:timers/promises')
const { Command } = require('commander')
const { CommandError } = require('@memwatch/exporter/commands/commands')
const { kinds } = require('@memwatch/exporter/captures/kinds')
const { judgedTarget } = require('@memwatch/exporter/expose/targets')
const { formatBytes } = require('@memwatch/engine/text/format')
const { toJson } = require('@memwatch/engine/text/json')
const { withApiOptions, callList } = require('./program/api')
const { findSubject } = require('./attachment/find-subject')
const { withAttachOptions } = require('./attachment/options')
const { orRefused } = require('./attach')
const { describeContainer, firstAid } = require('./triage/first-aid')
const { Interruption } = require('./watch/interruption')
const { out, err } = require('./program/output')
const { Progress } = require('./watch/progress')
const { renderReport } = require('./watch/report')
const { isAnyJudged, FAIL_ON_STATUS } = require('./run')
const { tar } = require('./triage/tar')
const { makeTemporaryFolder } = require('./program/temporary-folder')
const { openShipping, withShippingOptions } = require('./triage/triage-shipping')
const { toHtml, toMarkdown } = require('./triage/triage-documents')
const { UsageError, readSeconds } = require('./program/usage-error')
const { watchProcess } = require('./watch/watch-process')

const SECONDS = 60
/** Share of the watch, at its end, in which a requested profile runs. */
const PROFILE_SHARE = 0.25
/** Time limit for captures to arrive after the watch. */
const LATE_SECONDS = 10
const POLL_MS = 100
const WIDTH = 100
/** Time limit for the answer of an exporter that may know earlier deaths. */
const DEATHS_MS = 2000
/** Size limit of captures in the file; larger ones are only named. */
const MOST_CAPTURE_BYTES = 128 * 2 ** 20

const command = withShippingOptions(withAttachOptions(withApiOptions(new Command('triage'))))
  .description(
    'Attach to a running process for a minute, and write all evidence and a report to one file.'
  )
  .argument('<process>', 'process id, or name of the app: of its package or script')
  .option('--for <TIME>', `time to watch, such as 60, 90s or 5m (default: ${SECONDS})`)
  .option('--out <FILE>', 'the file (default: NAME-PID.memwatch.tgz in this folder)')
  .option('--no-profile', 'make no heap profile: a profile runs two full GCs')
  .option('-v, --verbose', 'list the checks that were ruled out, and those that are undecided')
  .allowExcessArguments(false)
  .addHelpText(
    'after',
    `
The file contains a recording for memwatch diagnose, the captures, and the report as Markdown, HTML
and JSON. The HTML opens without a network. The file names functions, files and packages of the app.
It contains strings of the heap only if a heap snapshot was captured. --ship-to also sends the file,
as TARGET/DATE/TIME-triage-PID.memwatch.tgz, by default without heap snapshots. Ctrl-C ends the
watch early and writes the file. The process continues without the agent.

If an exporter answers at --url, the report lists earlier deaths of the app.

Exit status: 0; 1 when the process cannot be attached to; 2 when it does not exist, or the file
cannot be written or sent; 4 when nothing was evaluated, because the process ended too soon.

Examples:
  $ memwatch triage 4711
  $ memwatch triage shop --for 5m --allow-forced-gc --out shop.memwatch.tgz
  $ memwatch triage shop --ship-to s3://diagnostics/triage --s3-region eu-west-1
  $ tar -xzOf shop.memwatch.tgz report.md`
  )
  .action(async (text, given) => {
    process.exitCode = await orRefused('triage', () => triage(text, given))
  })

/**
 * @typedef {import('./program/api').ApiOptions & import('./attachment/options').AttachOptions &
 *   { for?: string, out?: string, profile: boolean, verbose?: boolean }} TriageOptions
 * @typedef {import('./triage/triage-shipping').File} File
 */

/**
 * @param {string} text
 * @param {TriageOptions} given
 * @returns {Promise<number>} exit status
 */
async function triage (text, given) {
  const seconds = given.for === undefined ? SECONDS : readSeconds('--for', given.for)
  const subject = findSubject(text)
  subject.check(given)
  const ship = openShipping(given)
  const file = path.resolve(given.out ?? `${fileName(text)}-${subject.pid}.memwatch.tgz`)
  const descriptor = createFile(file)
  const folder = makeTemporaryFolder('memwatch-triage-')
  const record = path.join(folder, 'recording.ndjson.gz')
  const progress = new Progress(err, { label: 'memwatch triage', seconds })
  const interruption = new Interruption()
  /** @type {File[]} */
  const captures = []
  /** @type {string[]} */
  const container = []
  /** @type {NodeJS.Timeout | undefined} */
  let profiling
  try {
    const { report, notDetached } = await watchProcess({
      subject,
      given,
      forSeconds: seconds,
      record,
      abort: interruption.signal,
      onStart: (exporter, listen) => {
        progress.start(exporter, listen)
        exporter.on('frame', ({ thread, values }) => {
          if (thread === 'main') container.splice(0, Infinity, ...describeContainer(values))
        })
        if (given.profile) profiling = profileLater(exporter, seconds)
      },
      onWatched: exporter => untilCaptured(exporter, interruption.signal),
      onReport: async exporter => { captures.push(...await readCaptures(exporter)) }
    }).finally(() => { clearTimeout(profiling); progress.stop() })
    const name = report.targets[0]?.target ?? subject.command.at(-1) ?? 'process'
    const sections = [
      { title: 'Do now', lines: firstAid(report) },
      { title: 'Report', lines: renderReport(report, { width: WIDTH, verbose: given.verbose }) },
      { title: 'Container', lines: container.length > 0 ? container : ['Unknown: no frame.'] },
      { title: 'Deaths before', lines: await earlierDeaths(name, given) },
      { title: 'Keep', lines: keepLines(captures, record) }
    ]
    const title = `memwatch triage: ${name}, process ${subject.pid}`
    const files = [...documents(title, sections, report), fileOf(record), ...captures]
    fs.writeFileSync(descriptor, gzipSync(tar(files)))
    for (const { title, lines } of sections) {
      out.say('', { text: title, style: 'bold' }, ...lines)
    }
    if (notDetached) err.say(`memwatch triage: the agent stays in the process: ${notDetached}`)
    err.say(`memwatch triage: ${file}, ${formatSize(fs.statSync(file).size)}`)
    interruption.stop()
    const sent = ship ? await shipFile(ship, { target: name, pid: subject.pid, files }) : 0
    return sent || (isAnyJudged(report) ? 0 : FAIL_ON_STATUS.nothingSeen)
  } catch (error) {
    fs.rmSync(file, { force: true })
    throw error
  } finally {
    interruption.stop()
    fs.closeSync(descriptor)
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * @param {NonNullable<ReturnType<typeof openShipping>>} ship
 * @param {{ target: string, pid: number, files: readonly File[] }} of
 * @returns {Promise<number>} exit status
 */
async function shipFile (ship, of) {
  // The watch is over, so Ctrl-C now stops the sending.
  const interruption = new Interruption()
  try {
    const { key, omitted } = await ship({ ...of, signal: interruption.signal })
    const without = omitted === 0 ? '' : `, without ${omitted} heap snapshots (--ship-snapshots)`
    err.say(`memwatch triage: sent to --ship-to as ${key}${without}`)
    return 0
  } catch (error) {
    err.say(`memwatch triage: not sent to --ship-to: ${/** @type {Error} */ (error).message}`)
    return 2
  } finally {
    interruption.stop()
  }
}

/** @param {number} bytes bytes of a file */
const formatSize = bytes =>
  bytes < 2 ** 20 ? `${Math.ceil(bytes / 1024)} KiB` : formatBytes(bytes)

/** @param {string} text text from a user or an app */
const fileName = text => text.replace(/[^\w.-]+/g, '-').replace(/^[-.]+/, '') || 'process'

/**
 * Creates the output file before the watch, so that a file that cannot be written is an error at
 * once.
 * @param {string} file
 * @returns {number} descriptor
 * @throws {UsageError}
 */
function createFile (file) {
  try {
    return fs.openSync(file, 'w', 0o600)
  } catch (error) {
    throw new UsageError(`--out: cannot write ${file}: ${/** @type {Error} */ (error).message}`)
  }
}

/**
 * The report in each format.
 * @param {string} title
 * @param {readonly import('./triage/triage-documents').Section[]} sections
 * @param {import('./watch/watch-command').Report} report
 */
const documents = (title, sections, report) => [
  textFile('report.md', toMarkdown(title, sections)),
  textFile('report.html', toHtml(title, sections)),
  textFile('report.json', `${toJson(report, 2)}\n`)
]

/**
 * @param {string} file
 * @returns {File}
 */
const fileOf = file =>
  ({ name: path.basename(file), mode: 0o600, content: fs.readFileSync(file) })

/**
 * @param {string} name
 * @param {string} text
 * @returns {File}
 */
const textFile = (name, text) => ({ name, mode: 0o600, content: Buffer.from(text) })

/**
 * @param {import('@memwatch/exporter/exporter').Exporter} exporter
 * @param {number} seconds length of the watch; the profile ends with the watch
 */
function profileLater (exporter, seconds) {
  const profileSeconds = Math.max(1, Math.floor(seconds * PROFILE_SHARE))
  return setTimeout(() => profile(exporter, profileSeconds), 1000 * (seconds - profileSeconds))
}

/**
 * Requests a heap profile of the main thread, unless it is healthy or has been profiled: a leak
 * check is rarely decided within a minute.
 * @param {import('@memwatch/exporter/exporter').Exporter} exporter
 * @param {number} seconds
 */
function profile ({ captures, targets }, seconds) {
  const target = targets.find(({ thread, frame }) => thread === 'main' && frame)
  if (!target || captures.all.some(({ kind }) => kind === 'heap_profile')) return
  if (judgedTarget(target).headline.state === 'ok') return
  try {
    captures.request(target, { kind: 'heap_profile', seconds, diagnosis: 'js-heap-leak' })
  } catch (error) {
    // The app refuses captures, or makes one at the moment.
    if (!(error instanceof CommandError)) throw error
  }
}

/**
 * @param {import('@memwatch/exporter/exporter').Exporter} exporter
 * @param {AbortSignal} abort
 */
async function untilCaptured ({ captures }, abort) {
  const isRunning = () => captures.all.some(({ state }) => state === 'running')
  for (const began = performance.now(); isRunning() && !abort.aborted; await wait(POLL_MS)) {
    if (performance.now() - began > 1000 * LATE_SECONDS) return
  }
}

/**
 * @param {import('@memwatch/exporter/exporter').Exporter} exporter
 * @returns {Promise<File[]>}
 */
async function readCaptures ({ captures }) {
  const files = []
  for (const capture of captures.all.filter(({ state }) => state === 'done')) {
    for (const { part, bytes } of capture.parts) {
      const stream = bytes > MOST_CAPTURE_BYTES ? undefined : captures.read(capture, part)
      if (!stream) continue
      const { extension } = kinds[capture.kind]
      files.push({
        name: `captures/${capture.kind}-${capture.id.slice(0, 8)}-${part}.${extension}`,
        mode: 0o600,
        isSnapshot: capture.kind === 'heap_snapshot',
        content: Buffer.concat(await stream.toArray())
      })
    }
  }
  return files
}

/**
 * @param {string} name name of the target
 * @param {import('./program/api').ApiOptions} given
 * @returns {Promise<string[]>} lines
 */
async function earlierDeaths (name, given) {
  try {
    const deaths = await callList(
      { ...given, timeoutMs: DEATHS_MS }, `deaths?${new URLSearchParams({ target: name })}`
    )
    if (deaths.length === 0) {
      return [`The exporter at ${given.url} has recorded no death of ${name}.`]
    }
    return deaths.slice(0, 10).map(({ diedAtUnixMs, pid, text }) =>
      `${new Date(diedAtUnixMs).toISOString()}, pid ${pid}: ${text}`)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    return [`Unknown: no exporter answers at ${given.url}.`]
  }
}

/**
 * @param {readonly File[]} captures
 * @param {string} record
 * @returns {string[]}
 */
const keepLines = (captures, record) => [
  `recording.ndjson.gz (${formatSize(fs.statSync(record).size)}): for memwatch diagnose.`,
  ...captures.map(({ name, content }) => `${name} (${formatSize(content.length)})`),
  'Also read the log of the process, and of its previous container: kubectl logs --previous.'
]

module.exports = { command }
