'use strict'

const { Command } = require('commander')
const { replay, RecordingError } = require('@memwatch/engine/recording/replay')
const { judgedTarget } = require('@memwatch/exporter/expose/targets')
const { openAll, judgeSource, toldBy, SourceError } = require('./sources')
const { judgePrometheus } = require('./sources/prometheus')
const { formatSeconds } = require('@memwatch/engine/text/format')
const { writeReport, openFile, checkFailOn, failOnStatus, FAIL_ON, VERBOSE } = require('./run')
const { err } = require('./program/output')
const { UsageError, readBytes, readSeconds } = require('./program/usage-error')

const command = new Command('diagnose')
  .description(
    'Diagnose recordings, GC logs, diagnostic reports or stored metrics, with the same code as ' +
      'the exporter.'
  )
  .argument('[file...]', 'logs, recordings or reports, also gzip; - reads stdin; the type is detected')
  .option(
    '--prometheus <URL>',
    'diagnose metrics of prom-client or memwatch in a Prometheus instead of files'
  )
  .option('--selector <LABELS>', 'labels that select the series, such as \'{job="api"}\'', '{}')
  .option('--since <TIME>', 'length of the history to read, such as 6h or 2d', '6h')
  .option('--step <TIME>', 'shortest time between two samples, such as 30s')
  .option(
    '--flags <FLAGS>',
    'flags of the process, if the source lacks them: "--max-old-space-size=512"'
  )
  .option(
    '--memory <LIMIT>',
    'memory limit of its container, if the source lacks it, such as 512Mi or 1Gi'
  )
  .option('--node <VERSION>', 'version of its Node.js, if the source lacks it, such as 20 or ' +
    '24.1.0')
  .option('--json', 'print the report as JSON on stdout, and nothing else')
  .option('--report <FILE>', 'also write the report as JSON to a file')
  .option('--fail-on <STATE>', FAIL_ON)
  .option('-v, --verbose', VERBOSE)
  .addHelpText(
    'after',
    `
Sources: recordings of memwatch run --record and of the exporter; logs of one or more processes with
lines of node --trace-gc; Node's diagnostic reports; the JSON of v8.GCProfiler; and metrics of
prom-client or memwatch in a Prometheus. The report lists checks that the source cannot answer;
docs/sources.md names them for each source.

Exit status: 0; 2 when the source contains nothing to evaluate.
With --fail-on: 3 when a process is in that state or a worse one; 4 when no Node.js process was
found or evaluated. States from worst to best: confirmed, suspected, undecided (a leak check is
still open).

Examples:
  $ memwatch run --record app.recording.gz -- node server.js
  $ memwatch diagnose app.recording.gz
  $ memwatch diagnose --json app.recording.gz | jq '.targets[].headline'
  $ node --trace-gc server.js > app.log 2>&1
  $ memwatch diagnose app.log --memory 512Mi
  $ kubectl logs shop-5d4c | memwatch diagnose -
  $ memwatch diagnose report.*.json
  $ memwatch diagnose --prometheus http://localhost:9090 --selector '{job="api"}' \\
      --since 6h --memory 512Mi`
  )
  .action(async (files, given) => {
    process.exitCode = await diagnose(files, given)
  })

/**
 * @typedef {object} DiagnoseOptions options in the form of commander
 * @property {string} [prometheus]
 * @property {string} selector
 * @property {string} since
 * @property {string} [step]
 * @property {string} [flags]
 * @property {string} [memory]
 * @property {string} [node]
 * @property {boolean} [json]
 * @property {string} [report]
 * @property {string} [failOn]
 * @property {boolean} [verbose]
 */

/**
 * @param {string[]} files
 * @param {DiagnoseOptions} given
 * @returns {Promise<number>} exit status
 */
async function diagnose (files, given) {
  checkFailOn(given.failOn)
  const known = readGiven(given)
  let shown = ''
  const onProgress = (/** @type {string} */ what, /** @type {number} */ share) => {
    const text = `${Math.floor(share * 100)} % of ${what}`
    if (text !== shown) err.redraw(shown = text)
  }
  if (files.length > 0 && given.prometheus !== undefined) {
    throw new UsageError(`--prometheus: expected no files beside it, got ${JSON.stringify(files[0])}`)
  }
  if (files.length === 0 && given.prometheus === undefined) {
    throw new UsageError('diagnose: expected a file, - for stdin, or --prometheus URL, got none of them')
  }
  const judging =
    given.prometheus === undefined
      ? judgeFiles(files, known, onProgress)
      : judgeStored(given.prometheus, given, known, onProgress)
  const judged = await judging.catch(error => {
    if (error instanceof UsageError) throw error
    if (error instanceof SourceError || error instanceof RecordingError) {
      throw new UsageError(error.message)
    }
    // A file may contain values that the readers do not expect; the error must name the file in
    // this case, too.
    throw files.length > 0
      ? new UsageError(
          `cannot read ${files.join(', ')}: damaged, or not written by Node.js ` +
            `(${error.message})`
      )
      : error
  })
  err.clear()

  const { command, end, targets, ended, source } = judged
  const report = {
    schema: /** @type {const} */ (1),
    command,
    durationSeconds:
      end?.durationSeconds ?? Math.max(0, ...targets.map(({ watchedSeconds }) => watchedSeconds)),
    exit: end?.exit ?? { code: null, signal: null },
    ...(source && { source }),
    targets: targets.map(judgedTarget),
    deaths: []
  }
  const past = targets.filter(target => ended?.has(target))
  writeReport(
    report,
    given,
    given.report === undefined ? undefined : openFile('--report', given.report),
    {
      ended: past.map(({ hello: { pid }, thread, frame }) =>
        ({ pid, thread, afterSeconds: frame?.uptimeSeconds ?? 0 }))
    }
  )
  return failOnStatus(report, given.failOn) ?? 0
}

/**
 * @param {string[]} files
 * @param {import('./sources/define-source').Given} known
 * @param {(file: string, share: number) => void} onProgress
 * @returns {Promise<{ command: string[], end?: import('@memwatch/engine/recording/format').End, targets:
 *   import('@memwatch/engine/history/target').Target[], ended?:
 *   Set<import('@memwatch/engine/history/target').Target>, source?: import('./sources').Told }>}
 *   ended: targets whose process is known to have ended
 */
async function judgeFiles (files, known, onProgress) {
  const onError = (/** @type {Error} */ error) => err.say(`memwatch: ${error.message}`)
  const { kind, inputs } = await openAll(files, onProgress)
  if (kind !== 'recording') {
    // With a pipe the user waits, so findings are reported at once.
    const onVerdict = files.includes('-')
      ? (/** @type {import('@memwatch/engine/history/target').Target} */ { thread, hello, frame }, /** @type {import('@memwatch/engine/verdicts/evaluate').Verdict} */ { diagnosis, state, opportunity }) => {
          if (!opportunity && (state === 'suspected' || state === 'confirmed')) {
            err.say(
              `memwatch: pid ${hello.pid} ${thread}, after ` +
                `${formatSeconds(frame?.uptimeSeconds ?? 0)}: ${diagnosis} ${state}`
            )
          }
        }
      : undefined
    const { targets, ended, told } = await judgeSource(kind, inputs, known, { onError, onVerdict })
    for (const { name } of inputs.filter(({ cut }) => cut)) {
      told.notes.push(`${name} is incomplete: diagnosed up to its last whole line`)
    }
    return { command: files, targets, ended, source: told }
  }
  if (inputs.length > 1) throw new UsageError(`expected one recording, got ${inputs.length}: diagnose ${inputs[1].name} in a second run`)
  if (Object.keys(known).length > 0) {
    throw new UsageError(
      '--flags, --memory and --node: expected none of them for a recording, because a recording ' +
        'contains these facts'
    )
  }
  const { header, end, targets, rejected, cut } = await replay(inputs[0], { onError })
  if (rejected > 0) {
    err.say(
      `memwatch: ${files[0]}: skipped ${rejected} lines, damaged or of another version`
    )
  }
  if (cut) err.say(`memwatch: ${files[0]} is incomplete: diagnosed up to its last whole line`)
  // A recording without its last lines does not show if the connections ended.
  const ended = new Set(cut ? [] : targets.filter(({ connected }) => !connected))
  return { command: header.command ?? [], end, targets, ended }
}

/**
 * @param {string} url
 * @param {DiagnoseOptions} given
 * @param {import('./sources/define-source').Given} known
 * @param {(what: string, share: number) => void} onProgress
 * @returns {ReturnType<typeof judgeFiles>}
 */
async function judgeStored (url, given, known, onProgress) {
  const asked = {
    url,
    selector: given.selector,
    sinceSeconds: readSeconds('--since', given.since),
    stepSeconds: given.step === undefined ? 0 : readSeconds('--step', given.step)
  }
  const { targets, source, notes } = await judgePrometheus(asked, known, {
    onError: error => err.say(`memwatch: ${error.message}`),
    onProgress: share => onProgress(given.selector, share)
  })
  return {
    command: [`${withoutPassword(url)} ${given.selector}`],
    targets,
    source: toldBy(source, known, notes)
  }
}

/** Removes user and password from a URL, because a report may be forwarded. @param {string} url */
function withoutPassword (url) {
  const shown = new URL(url)
  shown.username = shown.password = ''
  return shown.href
}

/**
 * @param {DiagnoseOptions} given
 * @returns {import('./sources/define-source').Given}
 * @throws {UsageError}
 */
function readGiven ({ flags: text, memory, node }) {
  if (node !== undefined && !/^v?\d+(\.\d+)*$/.test(node)) {
    throw new UsageError(
      `--node: expected a version such as 20 or 24.1.0, got ${JSON.stringify(node)}`
    )
  }
  const flags = text?.split(/\s+/).filter(flag => flag !== '')
  if (flags && !flags[0]?.startsWith('-')) {
    throw new UsageError(
      `--flags: expected flags such as "--max-old-space-size=512", got ${JSON.stringify(text)}`
    )
  }
  return {
    ...(flags && { nodeOptions: flags }),
    ...(memory !== undefined && { containerLimitBytes: readBytes('--memory', memory) }),
    ...(node !== undefined && { nodeVersion: node.replace(/^v/, '') })
  }
}

module.exports = { command, judgeFiles }
