'use strict'

const fs = require('node:fs')
const { Command } = require('commander')
const {
  readBaseline, writeBaseline, refusedByPlan, refusedByFit, warningsOf, BaselineError
} = require('./gate/baseline')
const { toJunit } = require('./gate/junit')
const { measures, measureRun, isMeasurable, choosePer, pers, LEAST_READINGS } = require('./gate/measures')
const { renderResult, STATUS } = require('./gate/render')
const { decide, LEAST_BASELINE_RUNS } = require('./gate/sequential-test')
const { gateRun } = require('./gate/gate-run')
const { Interruption } = require('./watch/interruption')
const { out, err } = require('./program/output')
const { explainSpawnFailure } = require('./watch/spawn-failure')
const { makeTemporaryFolder } = require('./program/temporary-folder')
const { UsageError, readBytes, readSeconds } = require('./program/usage-error')

/** Tolerated difference of the live heap: a share of the baseline, and at least these bytes. */
const LEVEL = Object.freeze({ share: 0.1, bytes: 2 ** 20 })
const RUNS = Object.freeze({ baseline: 8, candidate: 5, most: 100 })
const RATE = Object.freeze({ least: 0.0001, most: 0.2 })

const command = new Command('gate')
  .description('Decide in CI whether a command leaks or holds more memory than a baseline did.')
  .argument('<command...>', 'the command, after --')
  .passThroughOptions()
  .usage('[options] -- <command...>')
  .option('--baseline <FILE>', 'compare with this baseline')
  .option('--write-baseline <FILE>', 'run the command several times, and write a baseline')
  .option('--for <TIME>', 'length of a run, such as 90, 90s or 5m; a third of it is warm-up', '30')
  .option(
    '--load <COMMAND>',
    "shell command of a load generator, started when the app listens, such as 'autocannon -j -d " +
      "25 localhost:3000'"
  )
  .option(
    '--runs <N>',
    `number of runs: the maximum with --baseline (default: ${RUNS.candidate}), the exact number ` +
      `with --write-baseline (default: ${RUNS.baseline})`
  )
  .option('--false-alarms <RATE>', 'highest rate of false alarms and of misses, such as 1% or ' +
    '0.01', '1%')
  .option(
    '--tolerate-growth <BYTES>',
    `tolerated additional growth for each request (default: ${pers.request.toleratedBytes}); if ` +
      `requests are unknown, for each MiB allocated (${pers.allocatedMiB.toleratedBytes}) or CPU ` +
      `second (${pers.cpuSecond.toleratedBytes})`
  )
  .option(
    '--tolerate-heap <SIZE>',
    'tolerated additional live heap, such as 4Mi (default: a tenth of the baseline, at least 1Mi)'
  )
  .option('--junit <FILE>', 'also write the result as JUnit XML')
  .option('--json', 'print the result as JSON on stdout, and nothing else')
  .addHelpText(
    'after',
    `
The agent runs a full GC before each reading. The gate compares the growth of the live heap and of
Buffers after warm-up, and the live heap at the end. After each run it decides, or starts another
run. Use the same load for each run. The number of requests comes from the output of --load (JSON as
from autocannon -j, text of wrk or hey), or from the last line of the app's output, if it is JSON
with "requests". The gate refuses a baseline with another Node.js version, limits, flags, load or
duration. It warns of another command or number of cores. It does not show the stdout of the
command.

Exit status:
  0  pass, or the baseline is written
  2  an option is invalid, or the baseline cannot be used
  3  worse than the baseline
  4  nothing was measured: no Node.js process reported, or too few readings
  5  the command failed
  6  undecided after the last run
  126, 127  the command cannot be started; 128 + N after signal N, such as 130 after Ctrl-C

Examples:
  $ memwatch gate --write-baseline main.baseline.json -- node app.js     on the main branch
  $ memwatch gate --baseline main.baseline.json -- node app.js           on a change
  $ memwatch gate --baseline main.baseline.json --junit gate.xml --for 60 \\
      --load 'autocannon -j -d 50 http://localhost:3000' -- node server.js`
  )
  .action(async (words, given) => {
    process.exitCode = await gate(words, given)
  })

/**
 * @typedef {object} Given options in the form of commander
 * @property {string} [baseline]
 * @property {string} [writeBaseline]
 * @property {string} for
 * @property {string} [load]
 * @property {string} [runs]
 * @property {string} falseAlarms
 * @property {string} [tolerateGrowth]
 * @property {string} [tolerateHeap]
 * @property {string} [junit]
 * @property {boolean} [json]
 *
 * @typedef {ReturnType<typeof readOptions>} Options
 * @typedef {import('./gate/render').Result} Result
 */

/**
 * @param {string[]} words the command
 * @param {Given} given
 * @returns {Promise<number>} exit status
 * @throws {UsageError}
 */
async function gate (words, given) {
  const options = readOptions(given)
  const began = performance.now()
  const interruption = new Interruption()
  const folder = makeTemporaryFolder('memwatch-gate-')
  try {
    const found = await runAndDecide(words, options, { folder, abort: interruption.signal })
    if (interruption.by) return interruption.status
    if ('notStarted' in found) return found.notStarted
    /** @type {Result} */
    const result = {
      schema: 1,
      reason: null,
      compared: [],
      per: null,
      warnings: [],
      ...found,
      command: words,
      looks: options.runs,
      baselineRuns: options.baseline?.runs.length ?? found.runs,
      rate: options.rate,
      seconds: (performance.now() - began) / 1000
    }
    if (options.junit !== undefined) fs.writeFileSync(options.junit, toJunit(result))
    if (given.json) out.json(result, 2)
    else out.say('', ...renderResult(result))
    return STATUS[result.outcome]
  } finally {
    interruption.stop()
    if (options.junit !== undefined) fs.closeSync(options.junit)
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * @param {string[]} words
 * @param {Options} options
 * @param {{ folder: string, abort: AbortSignal }} plan
 * @returns {Promise<Pick<Result, 'outcome' | 'runs'> & Partial<Result> | { notStarted: number }>}
 * @throws {UsageError}
 */
async function runAndDecide (words, options, plan) {
  const { baseline, load, forSeconds } = options
  /** @type {import('./gate/measures').GateRun[]} */
  const runs = []
  /** @type {import('./gate/baseline').Fit | undefined} */
  let first
  /** @type {Partial<Result>} */
  let found = {}
  for (let number = 1; number <= options.runs; number++) {
    err.say(`memwatch gate: run ${number} of ${baseline ? 'at most ' : ''}${options.runs}`)
    const { run, fit, exit, endedByUs, spawnError, loadError } = await gateRun({
      ...plan,
      command: words,
      forSeconds,
      load,
      say: text => err.say(`memwatch gate: ${text}`)
    }, number)
    if (plan.abort.aborted) return { outcome: 'undecided', runs: runs.length }
    if (loadError) throw new UsageError(loadError.message)
    if (spawnError) {
      const { text, status } = explainSpawnFailure(words, spawnError)
      err.say(text)
      return { notStarted: status }
    }
    const failed = !endedByUs && (exit.code !== 0)
    if (failed) {
      const how = exit.signal ? `signal ${exit.signal} ended it` : `its status is ${exit.code}`
      return { outcome: 'failed', runs: number, reason: `Run ${number}: ${how}.` }
    }
    const nothing = whyNothing(run)
    if (!run || !fit || nothing) return { outcome: 'nothing_seen', runs: number, reason: nothing }
    if (baseline || first) {
      refuse(options.file, refusedByFit(baseline?.fit ?? /** @type {NonNullable<typeof first>} */ (first), fit))
    }
    first ??= fit
    runs.push(run)
    if (!baseline) continue
    const warnings = warningsOf(baseline, { command: words, fit })
    found = { ...judge(baseline.runs, runs, options), warnings }
    if (found.outcome !== 'undecided') break
  }
  if (baseline) return { outcome: 'undecided', runs: runs.length, ...found }
  writeBaseline(options.file, {
    command: words,
    load: load ?? null,
    forSeconds,
    fit: /** @type {NonNullable<typeof first>} */ (first),
    runs
  })
  return { outcome: 'written', runs: runs.length, reason: `${options.file}: ${runs.length} runs.` }
}

/**
 * @param {import('./gate/measures').GateRun} [run]
 * @returns {string | null} reason why a run cannot be measured; null if it can
 */
function whyNothing (run) {
  if (!run) return 'No Node.js process of the command reported.'
  if (isMeasurable(run)) return null
  return `The run has ${run.readings.length} readings of the live heap; ${LEAST_READINGS} are ` +
    'needed after the warm-up, which is a third of a run. Set a longer --for.'
}

/**
 * @param {readonly import('./gate/measures').GateRun[]} was
 * @param {readonly import('./gate/measures').GateRun[]} is
 * @param {Pick<Options, 'runs' | 'rate'> & Partial<Options>} options tolerances are optional
 * @returns {Pick<Result, 'outcome' | 'per' | 'compared' | 'runs'>}
 */
function judge (was, is, { runs: looks, rate, growthBytes, heapBytes }) {
  const per = choosePer([...was, ...is])
  const [baseline, candidate] = [was, is].map(runs => runs.map(run => measureRun(run, per)))
  const tolerances = Object.fromEntries(Object.entries(measures).map(([name, { kind }]) => {
    const level = baseline.reduce((sum, run) => sum + run[name], 0) / baseline.length
    return [name, kind === 'growth'
      ? growthBytes ?? pers[per].toleratedBytes
      : heapBytes ?? Math.max(LEVEL.bytes, LEVEL.share * level)]
  }))
  return { ...decide(baseline, candidate, { looks, rate, tolerances }), per, runs: is.length }
}

/**
 * @param {string} file
 * @param {string[]} reasons
 * @throws {UsageError} if there is a reason
 */
function refuse (file, reasons) {
  if (reasons.length > 0) {
    throw new UsageError(`the baseline ${file} does not fit: ${reasons.join('; ')}`)
  }
}

/**
 * Checks all options before the first run.
 * @param {Given} given
 * @throws {UsageError}
 */
function readOptions (given) {
  const file = given.baseline ?? given.writeBaseline
  if (file === undefined || (given.baseline !== undefined && given.writeBaseline !== undefined)) {
    throw new UsageError('expected one of --baseline FILE and --write-baseline FILE')
  }
  const isNew = given.baseline === undefined
  const forSeconds = readSeconds('--for', given.for)
  const runs = given.runs === undefined
    ? isNew ? RUNS.baseline : RUNS.candidate
    : readRuns(given.runs, isNew ? LEAST_BASELINE_RUNS : 1)
  const options = {
    file,
    forSeconds,
    load: given.load,
    runs,
    rate: readRate(given.falseAlarms),
    growthBytes: given.tolerateGrowth === undefined ? undefined : readGrowth(given.tolerateGrowth),
    heapBytes: given.tolerateHeap === undefined
      ? undefined
      : readBytes('--tolerate-heap', given.tolerateHeap),
    baseline: isNew ? undefined : openBaseline(file, { forSeconds, load: given.load ?? null })
  }
  if (isNew) fs.closeSync(openOutput('--write-baseline', file, 'a'))
  const junit = given.junit === undefined ? undefined : openOutput('--junit', given.junit, 'w')
  return { ...options, junit }
}

/**
 * @param {string} file
 * @param {{ forSeconds: number, load: string | null }} plan
 * @throws {UsageError}
 */
function openBaseline (file, plan) {
  try {
    const baseline = readBaseline(file)
    const { runs } = baseline
    if (runs.length < LEAST_BASELINE_RUNS || !runs.every(isMeasurable)) {
      throw new BaselineError(
        `${file}: expected ${LEAST_BASELINE_RUNS} measurable runs at least, got ` +
          `${runs.filter(isMeasurable).length}; write it again`
      )
    }
    refuse(file, refusedByPlan(baseline, plan))
    return baseline
  } catch (error) {
    if (error instanceof BaselineError) throw new UsageError(`--baseline: ${error.message}`)
    throw error
  }
}

/**
 * Opens an output file before the runs, so that a file that cannot be written is an error at once.
 * @param {string} option
 * @param {string} file
 * @param {'a' | 'w'} flag flag of fs.open; `a` keeps the present content
 * @returns {number} descriptor
 */
function openOutput (option, file, flag) {
  try {
    return fs.openSync(file, flag)
  } catch (error) {
    throw new UsageError(`${option}: cannot write ${file}: ${/** @type {Error} */ (error).message}`)
  }
}

/**
 * @param {string} text
 * @param {number} least
 */
function readRuns (text, least) {
  const runs = /^\d{1,3}$/.test(text) ? Number(text) : NaN
  if (runs >= least && runs <= RUNS.most) return runs
  throw new UsageError(
    `--runs: expected a whole number from ${least} to ${RUNS.most}, got ${JSON.stringify(text)}`
  )
}

/** @param {string} text */
function readRate (text) {
  const [, digits, percent] = /^(\d+(?:\.\d+)?)(%?)$/.exec(text) ?? []
  const rate = Number(digits ?? NaN) / (percent ? 100 : 1)
  if (rate >= RATE.least && rate <= RATE.most) return rate
  throw new UsageError(
    `--false-alarms: expected a rate from 0.01% to 20%, such as 1% or 0.01, got ${JSON.stringify(text)}`
  )
}

/** @param {string} text */
function readGrowth (text) {
  if (/^\d{1,12}$/.test(text) && Number(text) > 0) return Number(text)
  throw new UsageError(`--tolerate-growth: expected bytes, such as 100, got ${JSON.stringify(text)}`)
}

module.exports = { command, judge }
