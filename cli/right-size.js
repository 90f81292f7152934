'use strict'

const fs = require('node:fs')
const { Command, Option } = require('commander')
const { RecordingError } = require('@memwatch/engine/recording/replay')
const { formatMebibytes } = require('@memwatch/engine/text/format')
const { formatDays } = require('@memwatch/engine/v8/right-size-text')
const { helmValues } = require('@memwatch/engine/fixes/change-sizes')
const { patchOf, NoPatchError } = require('@memwatch/engine/fixes/patch')
const { withApiOptions, callApi } = require('./program/api')
const { out, err } = require('./program/output')
const { SourceError } = require('./sources/define-source')
const { wrap } = require('./text/wrap')
const { prometheusTokenOption, readPrometheusToken } = require('./program/token-file')
const { UsageError, readSeconds } = require('./program/usage-error')

const FORMATS = /** @type {const} */ (['report', 'helm', 'kubernetes'])
/** Exit status if no size can be recommended, because of a leak or a missing history. */
const NO_SIZE_STATUS = 1
/** Exit code that a shell reports after SIGABRT, the signal of V8's abort when the heap is full. */
const ABORTED = 134

const command = withApiOptions(new Command('right-size'))
  .description(
    'Recommend memory request, limit, --max-old-space-size and semi-space together, from the ' +
      'history of a workload.'
  )
  .argument(
    '[source...]',
    'name of a target, as memwatch top lists it; or recordings, of one or several pods'
  )
  .addOption(
    new Option('--format <FORMAT>', 'report; helm: values; kubernetes: a patch for kubectl apply')
      .choices(FORMATS)
      .default('report')
  )
  .option('--name <NAME>', 'name of the app, if recordings contain several apps')
  .option('--prometheus <URL>', 'read the metrics of an exporter from a Prometheus')
  .option('--selector <LABELS>', 'labels that select one workload in Prometheus, such as ' +
    '\'{job="shop"}\'')
  .option('--since <TIME>', 'length of the history to read from Prometheus, such as 12h or ' +
    '14d', '14d')
  .addOption(prometheusTokenOption())
  .option('--guaranteed', 'make request and limit equal, as for a Guaranteed pod')
  .option('--workload <KIND/NAME>', 'workload to patch, such as deployment/shop')
  .option('--namespace <NAME>', 'namespace of the workload')
  .option('--container <NAME>', 'container of the pod')
  .option('--json', 'print the answer as JSON on stdout, and nothing else')
  .addHelpText(
    'after',
    `
An exporter has the history of running processes, for up to a week. docs/right-size.md has the
rules, and compares them with Kubernetes' Vertical Pod Autoscaler on simulated weeks.

Exit status: 0; 1 when no size can be recommended, because a leak is confirmed or nothing was
measured; 2 when an option is invalid, a source cannot be read, or the target does not exist.

Examples:
  $ memwatch right-size shop
  $ memwatch right-size monday.recording.gz tuesday.recording.gz
  $ memwatch right-size --prometheus http://localhost:9090 --selector '{job="shop"}' --since 14d
  $ memwatch right-size shop --format helm --guaranteed > sizes.yaml
  $ memwatch right-size shop --format kubernetes --workload deployment/shop --container app |
      kubectl apply --server-side --field-manager=memwatch -f -`
  )
  .action(async (sources, given) => {
    process.exitCode = await recommend(sources, given)
  })

/**
 * @typedef {import('./program/api').ApiOptions & { format: typeof FORMATS[number], name?: string,
 *   prometheus?: string, selector?: string, since: string, prometheusTokenFile?: string,
 *   guaranteed?: boolean, workload?: string, namespace?: string, container?: string, json?: boolean
 *   }} Given options in the form of commander
 *
 * @typedef {import('@memwatch/engine/v8/right-size').RightSize & { change:
 *   import('@memwatch/engine/diagnoses/define-diagnosis').Change | null }} Answer
 *
 * @typedef {{ target: string, pod?: import('@memwatch/agent/protocol/frame').Pod | null,
 *   nodeOptions: string[] }} Workload name, with namespace, pod or container in Kubernetes if known
 */

/**
 * @param {string[]} sources
 * @param {Given} given
 * @returns {Promise<number>} exit status
 */
async function recommend (sources, given) {
  const { workload, answer } = await readSource(sources, given).catch(error => {
    const isKnown = error instanceof SourceError || error instanceof RecordingError
    throw isKnown ? new UsageError(error.message) : error
  })
  const status = answer.sizes ? 0 : NO_SIZE_STATUS
  if (given.json) out.json({ ...answer, target: workload.target })
  else if (given.format === 'report') {
    out.say(...render(workload.target, answer, out.columns || 100))
  } else if (!answer.change) err.say(...answer.notes.map(note => `memwatch: ${note}`))
  else out.text(formOf(workload, answer, answer.change, given))
  return status
}

/**
 * @param {string[]} sources
 * @param {Given} given
 * @returns {Promise<{ workload: Workload, answer: Answer }>}
 * @throws {UsageError}
 */
async function readSource (sources, given) {
  if (given.prometheus !== undefined) {
    if (sources.length > 0) {
      throw new UsageError(
        `--prometheus: expected no other source beside it, got ${JSON.stringify(sources[0])}`
      )
    }
    return await readPrometheus(given.prometheus, given)
  }
  if (sources.length === 0) {
    throw new UsageError(
      'right-size: expected a target, recordings, or --prometheus URL, got none of them'
    )
  }
  const isFile = (/** @type {string} */ name) => name === '-' || fs.existsSync(name)
  const stranger = sources.find(name => !isFile(name))
  if (stranger === undefined) return await readRecordings(sources, given)
  if (/^[./]|\.gz$/.test(stranger)) {
    throw new UsageError(`right-size: cannot read ${stranger}: no such file`)
  }
  if (sources.length === 1) return await readExporter(stranger, given)
  throw new UsageError(
    `right-size: expected recordings, or one target, got ${JSON.stringify(stranger)}`
  )
}

/**
 * @param {string} target
 * @param {Given} given
 */
async function readExporter (target, given) {
  const query = new URLSearchParams({ target, guaranteed: String(given.guaranteed ?? false) })
  const { body, refused } = await callApi(given, `right-size?${query}`)
  if (refused) throw new UsageError(refused)
  const { target: name, ...answer } = body
  const { body: [found] } = await callApi(given, `targets?${new URLSearchParams({ target })}`)
  const { pod, nodeOptions = [] } = found ?? {}
  return { workload: { target: name, pod, nodeOptions }, answer }
}

/**
 * @param {string[]} files
 * @param {Given} given
 */
async function readRecordings (files, { name: wanted, guaranteed }) {
  const { WorkloadSizes } = require('@memwatch/engine/verdicts/workload-sizes')
  const { replayFile } = require('./sources/replay-file')
  /** @type {Map<string, { sizes: InstanceType<typeof WorkloadSizes>, workload: Workload }>} */
  const workloads = new Map()
  let fullHeaps = 0
  for (const file of files) {
    const { end, targets } = await replayFile(file, {
      onFrame: target => {
        const { name, nodeOptions, pod } = target.hello
        let of = workloads.get(name)
        if (!of) {
          of = { sizes: new WorkloadSizes(), workload: { target: name, pod, nodeOptions } }
          workloads.set(name, of)
        }
        of.sizes.frame(target)
      },
      onError: error => err.say(`memwatch: ${error.message}`)
    })
    for (const target of targets) workloads.get(target.hello.name)?.sizes.state(target)
    const { code, signal } = end?.exit ?? {}
    if (signal === 'SIGABRT' || code === ABORTED) fullHeaps++
  }
  const names = [...workloads.keys()]
  const found = workloads.get(wanted ?? names[0])
  if (!found || (wanted === undefined && names.length > 1)) {
    throw new UsageError(wanted === undefined && names.length === 0
      ? `right-size: expected a recording with frames, got none in ${files.join(', ')}`
      : `--name: expected one of ${names.join(', ') || 'none'}, got ${wanted ?? 'nothing'}`)
  }
  for (let i = 0; i < fullHeaps; i++) found.sizes.death('heap_oom')
  return { workload: found.workload, answer: found.sizes.answer({ guaranteed }) }
}

/**
 * @param {string} url
 * @param {Given} given
 */
async function readPrometheus (url, { selector, since, guaranteed, prometheusTokenFile: file }) {
  if (selector === undefined) {
    throw new UsageError(
      '--selector: expected the labels of one workload, such as \'{job="shop"}\', got nothing'
    )
  }
  const { sizesFromPrometheus } = require('./sources/stored-sizes')
  const sinceSeconds = readSeconds('--since', since)
  const token = readPrometheusToken(file)
  const answer = await sizesFromPrometheus({ url, selector, sinceSeconds, token, guaranteed })
  return { workload: { target: selector, nodeOptions: [] }, answer }
}

/**
 * @param {Workload} workload
 * @param {Answer} answer
 * @param {NonNullable<Answer['change']>} change
 * @param {Given} given
 * @returns {string}
 * @throws {UsageError}
 */
function formOf (workload, answer, change, { format, ...where }) {
  const title = `Sizes of ${workload.target}, from ${formatDays(answer.days)}`
  if (format === 'helm') return helmValues(change, [title, ...answer.notes])
  try {
    return patchOf({ title, change, risk: answer.notes.join(' ') }, workload, 'kubernetes', where)
  } catch (error) {
    throw error instanceof NoPatchError ? new UsageError(error.message) : error
  }
}

/**
 * @param {string} name
 * @param {Answer} answer
 * @param {number} columns
 * @returns {string[]} lines
 */
function render (name, { sizes, reasons, notes, days, containers, confidence, change }, columns) {
  const width = Math.min(columns, 100)
  const head = `${name}: ${containers} ${containers === 1 ? 'container' : 'containers'}, ` +
    `${formatDays(days)} of history`
  const remarks = notes.flatMap(note => wrap(`- ${note}`, width, 0))
  if (!sizes) return [head, '', ...remarks]
  const old = sizes.flags['--max-old-space-size'] === undefined ? 'no flag' : undefined
  const semi = sizes.flags['--max-semi-space-size'] === undefined ? 'no flag' : undefined
  const rows = /** @type {[string, string, string | undefined][]} */ ([
    ['memory request', formatMebibytes(sizes.requestBytes), reasons.request],
    ['memory limit', formatMebibytes(sizes.limitBytes), reasons.limit],
    ['--max-old-space-size', old ?? formatMebibytes(sizes.oldBytes), old
      ? `V8 chooses ${formatMebibytes(sizes.unset?.oldBytes ?? 0)}; ${reasons.oldGeneration}`
      : reasons.oldGeneration],
    ['--max-semi-space-size', semi ?? formatMebibytes(sizes.semiSpaceBytes), reasons.semiSpace]
  ])
  const indent = 36
  return [
    `${head}, ${confidence} confidence`,
    '',
    ...rows.flatMap(([label, size, reason = '']) => {
      const [first, ...more] = wrap(reason, width, indent)
      return [`${label.padEnd(23)}${size.padStart(10)}   ${first.trimStart()}`, ...more]
    }),
    ...(change?.env?.NODE_OPTIONS ? ['', `NODE_OPTIONS="${change.env.NODE_OPTIONS}"`] : []),
    ...(remarks.length > 0 ? ['', ...remarks] : [])
  ]
}

module.exports = { command, render }
