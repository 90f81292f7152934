'use strict'

const fs = require('node:fs')
const { fieldsOf, integer, isObject, matching, number, text, texts } = require('@memwatch/engine/decode/rebuild')
const { plainText } = require('@memwatch/agent/protocol/text-rules')
const { formatBytes, formatSeconds } = require('@memwatch/engine/text/format')
const { shellWord } = require('@memwatch/engine/text/shell')

/**
 * File of a baseline: JSON with the readings of all runs, so that later versions can compute
 * measures in another way.
 *
 * @typedef {object} Baseline
 * @property {'gate-baseline'} memwatch
 * @property {number} version
 * @property {string[]} command
 * @property {string | null} load command of --load
 * @property {number} forSeconds
 * @property {Fit} fit
 * @property {import('./measures').GateRun[]} runs
 *
 * @typedef {object} Fit settings of the process that determine its memory
 * @property {string} node version
 * @property {string} platform platform and architecture
 * @property {string} libc
 * @property {string[]} flags effective flags of Node.js and V8, as name=value
 * @property {number} heapSizeLimitBytes
 * @property {number | null} containerLimitBytes null without a limit
 * @property {number | null} cores null if unknown
 */

const BASELINE_VERSION = 1
/** Upper bounds of a file that may come from a cache or an artifact. */
const MOST = Object.freeze({ bytes: 64 * 2 ** 20, runs: 1000, readings: 100_000, words: 1000 })
/** Largest relative difference of heap limits on machines of one kind. */
const ALIKE = 0.05

/** Error for a baseline that cannot be used; the message is the reason. */
class BaselineError extends Error {}

/**
 * @template T
 * @param {import('@memwatch/engine/decode/rebuild').Rebuild<T>} rebuild
 * @returns {import('@memwatch/engine/decode/rebuild').Rebuild<T | null>}
 */
const orNull = rebuild => value => value === null ? null : rebuild(value)

/**
 * @template T
 * @param {import('@memwatch/engine/decode/rebuild').Rebuild<T>} rebuild
 * @param {number} most
 * @returns {import('@memwatch/engine/decode/rebuild').Rebuild<T[]>}
 */
const listOf = (rebuild, most) => value => {
  if (!Array.isArray(value) || value.length > most) return undefined
  const items = value.map(rebuild)
  return items.includes(undefined) ? undefined : /** @type {T[]} */ (items)
}

/** @type {import('@memwatch/engine/decode/rebuild').Rebuild<Omit<Baseline, 'memwatch' | 'version'>>} */
const rebuildBaseline = fieldsOf({
  command: texts(text(4096), MOST.words),
  load: orNull(text(4096)),
  forSeconds: number,
  fit: fieldsOf({
    node: matching(/^[0-9A-Za-z][0-9A-Za-z.+-]{0,63}$/),
    platform: matching(/^[\w-]{1,64}$/),
    libc: matching(/^[a-z]{1,16}$/),
    flags: texts(text(4096)),
    heapSizeLimitBytes: number,
    containerLimitBytes: orNull(number),
    cores: orNull(integer(2 ** 20))
  }),
  runs: listOf(fieldsOf({
    seconds: number,
    cpuSeconds: number,
    requests: orNull(number),
    allocatedBytes: orNull(number),
    readings: listOf(
      fieldsOf({
        seconds: number,
        cpuSeconds: number,
        majors: number,
        heapBytes: number,
        externalBytes: number
      }),
      MOST.readings
    )
  }), MOST.runs)
})

/**
 * @param {string} file
 * @returns {Baseline}
 * @throws {BaselineError}
 */
function readBaseline (file) {
  let json
  try {
    const { size } = fs.statSync(file)
    if (size > MOST.bytes) throw new Error(`the file is larger than ${formatBytes(MOST.bytes)}`)
    json = JSON.parse(fs.readFileSync(file, 'utf8'))
  } catch (error) {
    const { code, message } = /** @type {NodeJS.ErrnoException} */ (error)
    throw new BaselineError(`cannot read ${file}: ${code === 'ENOENT' ? 'no such file' : message}`)
  }
  if (!isObject(json) || json.memwatch !== 'gate-baseline') {
    throw new BaselineError(
      `${file} is no baseline: memwatch gate --write-baseline ${shellWord(file)} makes one`
    )
  }
  if (json.version !== BASELINE_VERSION) {
    const got = plainText(String(json.version)).slice(0, 40)
    throw new BaselineError(
      `${file}: expected a baseline of version ${BASELINE_VERSION}, got version ${got}`
    )
  }
  const rebuilt = rebuildBaseline(json)
  if (!rebuilt) throw new BaselineError(`${file} is damaged: a field of the baseline is missing or wrong`)
  return { memwatch: 'gate-baseline', version: BASELINE_VERSION, ...rebuilt }
}

/**
 * @param {string} file
 * @param {Omit<Baseline, 'memwatch' | 'version'>} baseline
 */
function writeBaseline (file, baseline) {
  const content = {
    memwatch: 'gate-baseline',
    version: BASELINE_VERSION,
    ...baseline,
    command: baseline.command.map(word => plainText(word)),
    load: baseline.load === null ? null : plainText(baseline.load)
  }
  fs.writeFileSync(file, `${JSON.stringify(content)}\n`)
}

/** @param {number | null} bytes */
const limit = bytes => bytes === null ? 'no limit' : formatBytes(bytes)

/**
 * Differences that make a comparison with the baseline impossible, known before the run.
 * @param {Baseline} baseline
 * @param {{ forSeconds: number, load: string | null }} plan
 * @returns {string[]} sentences
 */
const refusedByPlan = (baseline, { forSeconds, load }) => [
  ...baseline.forSeconds === forSeconds
    ? []
    : [`its runs lasted ${formatSeconds(baseline.forSeconds)}, and these last ` +
        `${formatSeconds(forSeconds)}: --for ${baseline.forSeconds}`],
  ...baseline.load === (load === null ? null : plainText(load))
    ? []
    : ['its --load was ' +
    `${baseline.load ?? 'none'}, and is now ${load ?? 'none'}`]
]

/**
 * Differences that make a comparison with the baseline impossible, known from the process.
 * @param {Fit} was
 * @param {Fit} is
 * @returns {string[]} sentences
 */
function refusedByFit (was, is) {
  const found = []
  if (was.node !== is.node) {
    found.push(`it was made with Node.js ${was.node}, and this is ` +
    `${is.node}`)
  }
  if (was.platform !== is.platform || was.libc !== is.libc) {
    found.push(`it was made on ${was.platform} with ${was.libc}, and this is ${is.platform} with ` +
      `${is.libc}`)
  }
  if (was.flags.join(' ') !== is.flags.join(' ')) {
    found.push(`its flags were ${was.flags.join(' ') || 'none'}, and are now ` +
      `${is.flags.join(' ') || 'none'}`)
  }
  if (Math.abs(was.heapSizeLimitBytes - is.heapSizeLimitBytes) > ALIKE * was.heapSizeLimitBytes) {
    found.push(`its heap size limit was ${limit(was.heapSizeLimitBytes)}, and is now ` +
      `${limit(is.heapSizeLimitBytes)}`)
  }
  if (was.containerLimitBytes !== is.containerLimitBytes) {
    found.push(
      `its container had ${limit(was.containerLimitBytes)}, and this one ${limit(is.containerLimitBytes)}`
    )
  }
  return found
}

/**
 * Differences that still allow a comparison, because they may not matter.
 * @param {Baseline} baseline
 * @param {{ command: string[], fit: Fit }} ran
 * @returns {string[]} sentences
 */
function warningsOf (baseline, { command, fit }) {
  const words = (/** @type {string[]} */ of) => of.map(shellWord).join(' ')
  const found = []
  if (words(baseline.command) !== words(command.map(word => plainText(word)))) {
    found.push(`the command of the baseline was ${words(baseline.command)}`)
  }
  if (baseline.fit.cores !== fit.cores) {
    found.push(`the baseline had ${baseline.fit.cores ?? 'unknown'} cores, and this machine has ${fit.cores ?? 'unknown'}`)
  }
  return found
}

module.exports = {
  readBaseline, writeBaseline, refusedByPlan, refusedByFit, warningsOf, BaselineError
}
