'use strict'

const path = require('node:path')
const os = require('node:os')
const { fork } = require('node:child_process')
const { plainText } = require('@memwatch/agent/protocol/text-rules')
const { sentenceOf, sumByPackage, pathLines } = require('@memwatch/engine/snapshot/sentence')
const { formatBytes } = require('@memwatch/engine/text/format')
const { rebuild } = require('../data-folder/contract')
const { retainers: schema } = require('./schema')

/** @typedef {import('@memwatch/engine/snapshot/findings').Findings} Findings */

/**
 * @typedef {object} Job
 * @property {string} file path of a .heapsnapshot, plain or gzip
 * @property {string} [earlier] path of an earlier snapshot of the same process
 * @property {number} allowedBytes memory that the analysis may take
 * @property {string} [agentFolder] folder of the agent, whose code is not reported as a holder
 * @property {string} [redactTo] path of a copy without contents, which is written instead of an
 *   analysis
 *
 * @typedef {object} Answer
 * @property {string} [progress]
 * @property {Findings} [findings]
 * @property {number} [peakBytes] highest resident memory of the side process
 * @property {number} [redacted] number of replaced strings
 * @property {{ code: string, message: string, predictedBytes?: number, allowedBytes?: number
 *   }} [failed]
 */

/**
 * Error for a snapshot that cannot be analysed. Its message is for the user, and `code` is the
 * reason.
 */
class RetainersError extends Error {
  /**
   * @param {string} code
   * @param {string} message
   */
  constructor (code, message) {
    super(message)
    this.code = code
  }
}

const MAIN = path.join(__dirname, 'retainers-process.js')
/** Default memory limit of an analysis, enough for a snapshot of 500 MiB. */
const DEFAULT_BYTES = 1.5 * 2 ** 30
/** Largest share of the free memory of this machine or container for an analysis. */
const MOST_SHARE = 0.75
/**
 * Share of an analysis's memory that V8's heap may take; columns of numbers are outside the heap.
 */
const HEAP_SHARE = 1 / 3
const LEAST_HEAP_MIB = 256
const MIB = 2 ** 20

/**
 * Default limit of memory for an analysis.
 * @returns {number} bytes
 */
function defaultMemory () {
  // Node.js 20.13 and later report the free memory within a cgroup.
  const left = process.availableMemory?.() ?? os.freemem()
  return Math.floor(Math.min(DEFAULT_BYTES, left * MOST_SHARE))
}

/**
 * Analyses or redacts a heap snapshot in a side process with a low priority and a bounded heap.
 * The side process refuses a snapshot that would take more memory than is allowed.
 * @param {Job} job
 * @param {object} [options]
 * @param {(what: string) => void} [options.onProgress]
 * @param {AbortSignal} [options.signal]
 * @returns {Promise<Answer>} with findings, or the number of redacted strings
 * @throws {RetainersError}
 */
function runRetainers (job, { onProgress = () => {}, signal } = {}) {
  const heapMib = Math.max(LEAST_HEAP_MIB, Math.floor((job.allowedBytes * HEAP_SHARE) / MIB))
  const child = fork(MAIN, {
    execArgv: [`--max-old-space-size=${heapMib}`],
    // NODE_OPTIONS may preload the agent of a watched command line, which the side process does not
    // need.
    env: { ...process.env, NODE_OPTIONS: '', MEMWATCH_DISABLED: '1' },
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    signal
  })
  return new Promise((resolve, reject) => {
    /** @type {Answer | undefined} */
    let answer
    child.on('message', message => {
      const { progress, ...rest } = /** @type {Answer} */ (message)
      if (progress !== undefined) onProgress(progress)
      else answer = rest
    })
    child.on('error', reject)
    child.on('exit', (code, killed) => {
      if (answer?.failed) reject(new RetainersError(answer.failed.code, textOf(answer.failed)))
      else if (answer) resolve(answer)
      else reject(new RetainersError('ended', `the analysis of ${job.file} ended by ${killed ?? `status ${code}`}`))
    })
    child.send(job)
  })
}

/** @param {NonNullable<Answer['failed']>} failed */
function textOf ({ code, message, predictedBytes, allowedBytes }) {
  if (code !== 'too_large' || predictedBytes === undefined || allowedBytes === undefined) {
    return message
  }
  return `${message}: ${formatBytes(predictedBytes)} predicted, ${formatBytes(allowedBytes)} allowed`
}

/**
 * Piles in a heap snapshot (groups of similar objects), in the form of the API and of the record on
 * disk.
 * @typedef {object} Retainers
 * @property {string | null} refused reason why the snapshot was not analysed; null if it was
 * @property {number | null} reachableBytes
 * @property {number | null} sinceUnixMs time of the earlier snapshot: the piles are objects created
 *   since; null if there was none, or nothing piled up since
 * @property {import('@memwatch/engine/text/suspect-text').Pile[]} piles largest first
 * @property {import('@memwatch/engine/text/suspect-text').PackageShare[]} packages packages whose
 *   code holds the piles, largest first
 */

/** Time limit of an analysis, because a person waits for the capture. */
const MOST_SECONDS = 120
/** Length limit of a text: names in a snapshot may have any length. */
const MOST_TEXT = 1000
const MOST_LINE = 200

/**
 * @param {string} file
 * @param {object} [options]
 * @param {{ file: string, atUnixMs: number }} [options.earlier] snapshot of the same isolate
 * @param {string} [options.app] name of the app, used for its own code in the list by package
 * @param {string} [options.folder] folder of the app, removed from file names
 * @param {string} [options.agentFolder] folder of the agent, whose own objects are not reported
 * @param {number} [options.allowedBytes]
 * @param {AbortSignal} [options.signal]
 * @returns {Promise<Retainers>} holders; never rejects, because the snapshot is stored even if its
 *   analysis fails
 */
async function retainersOf (file, { earlier, ...options } = {}) {
  if (earlier) {
    const grown = await analyse({ file, earlier: earlier.file }, options)
    if (grown.piles.length > 0) return { ...grown, sinceUnixMs: earlier.atUnixMs }
  }
  return analyse({ file }, options)
}

/**
 * @param {{ file: string, earlier?: string }} of
 * @param {Omit<NonNullable<Parameters<typeof retainersOf>[1]>, 'earlier'>} options
 * @returns {Promise<Retainers>}
 */
async function analyse (
  { file, earlier },
  { app = 'app', folder, agentFolder, allowedBytes = defaultMemory(), signal }
) {
  const timeout = AbortSignal.timeout(MOST_SECONDS * 1000)
  const none = { reachableBytes: null, sinceUnixMs: null, piles: [], packages: [] }
  try {
    const { findings: found } = await runRetainers(
      { file, earlier, allowedBytes, agentFolder },
      { signal: signal ? AbortSignal.any([signal, timeout]) : timeout }
    )
    const { reachableBytes, findings } = /** @type {Findings} */ (found)
    const piles = findings.map(finding => ({
      text: sentenceOf(finding, { folder }).slice(0, MOST_TEXT),
      className: finding.className.slice(0, MOST_LINE),
      count: finding.count,
      retainedBytes: finding.retainedBytes,
      bufferBytes: finding.bufferBytes,
      package: finding.package?.slice(0, MOST_LINE) ?? null,
      root: finding.root.kind,
      path: pathLines(finding, { folder }).map(line => line.slice(0, MOST_LINE))
    }))
    const packages = sumByPackage(findings, app)
      .map(share => ({ ...share, package: share.package.slice(0, MOST_LINE) }))
    // Names in a snapshot are untrusted texts of the app, so control characters are removed.
    return rebuild(schema, { ...none, refused: null, reachableBytes, piles, packages }) ??
      { ...none, refused: 'its findings do not fit their contract' }
  } catch (error) {
    const message = /** @type {Error} */ (error).message.replaceAll(file, 'the snapshot')
    return { ...none, refused: plainText(message, MOST_TEXT) }
  }
}

module.exports = { retainersOf, runRetainers, defaultMemory, RetainersError }
