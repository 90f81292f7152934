'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { Command } = require('commander')
const { runRetainers, defaultMemory, RetainersError } = require('@memwatch/exporter/captures/retainers')
const { Sources } = require('@memwatch/exporter/captures/sources')
const { formatBytes } = require('@memwatch/engine/text/format')
const { sentenceOf, sumByPackage, pathLines, size } = require('@memwatch/engine/snapshot/sentence')
const { wrap } = require('./text/wrap')
const { out, err } = require('./program/output')
const { UsageError, readBytes } = require('./program/usage-error')

/** @typedef {import('@memwatch/engine/snapshot/findings').Findings} Findings */

/** Folder of this agent, whose code is not reported as a holder. */
const agentFolder = path.dirname(require.resolve('@memwatch/agent/package.json'))
/** Largest width in columns: longer lines are hard to read. */
const WIDTH = 110

const command = new Command('retainers')
  .description('Name the objects of a heap snapshot that pile up, and their holders.')
  .argument('<snapshot>', '.heapsnapshot file of V8 or of memwatch capture, gzip or plain')
  .argument('[later]', 'later snapshot of the same process: only objects created between the two ' +
    'count')
  .option('--memory <SIZE>', 'memory limit of the analysis, such as 2Gi (default: 1.5Gi, or 3/4 ' +
    'of the free memory)')
  .option('-v, --verbose', 'also print the path from the root to each pile')
  .option('--json', 'print the findings as JSON on stdout, and nothing else')
  .option('--redact', 'write a copy without the contents of strings to --out, for sharing')
  .option('-o, --out <FILE>', 'write the findings as JSON, or the redacted copy, to this file')
  .allowExcessArguments(false)
  .addHelpText(
    'after',
    `
The analysis runs in a separate process, at a low priority. It refuses a snapshot that needs more
memory than --memory, and prints the needed size. A redacted copy keeps names of classes,
functions, variables and files, and property names that look like identifiers; all other text
becomes "redacted N".

Exit status: 0, with or without findings; 2 when a file or an option is invalid.

Examples:
  $ memwatch retainers Heap.20260101.heapsnapshot
  $ memwatch retainers before.heapsnapshot after.heapsnapshot -v
  $ memwatch retainers shop.heapsnapshot --json | jq -r '.findings[].sentence'
  $ memwatch retainers shop.heapsnapshot --redact --out shareable.heapsnapshot`
  )
  .action(async (snapshot, later, given) => {
    process.exitCode = await retainers(snapshot, later, given)
  })

/**
 * @param {string} snapshot
 * @param {string | undefined} later
 * @param {{ memory?: string, verbose?: boolean, json?: boolean, redact?: boolean, out?: string
 *   }} given
 * @returns {Promise<number>} exit status
 * @throws {UsageError}
 */
async function retainers (snapshot, later, given) {
  const allowedBytes =
    given.memory === undefined ? defaultMemory() : readBytes('--memory', given.memory)
  for (const file of later === undefined ? [snapshot] : [snapshot, later]) checkFile(file)
  if (given.redact) return redact(snapshot, later, given, allowedBytes)
  const job = later === undefined
    ? { file: fs.realpathSync(snapshot), allowedBytes, agentFolder }
    : {
        file: fs.realpathSync(later),
        earlier: fs.realpathSync(snapshot),
        allowedBytes,
        agentFolder
      }
  const { findings } = await run(job)
  const of = later === undefined ? { file: snapshot } : { file: later, earlier: snapshot }
  const report = reportOf(/** @type {Findings} */ (findings), of)
  if (given.out !== undefined) writeJson(given.out, report)
  const width = Math.min(out.columns || 100, WIDTH)
  if (given.json) out.json(report, 2)
  else out.say(...render(report, { verbose: given.verbose, width }))
  return 0
}

/**
 * @param {string} snapshot
 * @param {string | undefined} later
 * @param {{ out?: string, json?: boolean }} given
 * @param {number} allowedBytes
 * @returns {Promise<number>}
 */
async function redact (snapshot, later, { out: redactTo }, allowedBytes) {
  if (later !== undefined) throw new UsageError(`--redact: expected one snapshot, got a second one: ${JSON.stringify(later)}`)
  if (redactTo === undefined) throw new UsageError('--redact: expected --out FILE for the copy, got none')
  if (fs.existsSync(redactTo)) throw new UsageError(`--out: ${redactTo} already exists; choose another file`)
  const { redacted } = await run({ file: fs.realpathSync(snapshot), allowedBytes, redactTo })
  err.say(`memwatch retainers: ${redacted} strings redacted; read ${redactTo} before you share it`)
  return 0
}

/**
 * @param {import('@memwatch/exporter/captures/retainers').Job} job
 * @throws {UsageError}
 */
async function run (job) {
  try {
    return await runRetainers(job, { onProgress: what => err.redraw(`memwatch retainers: ${what}`) })
  } catch (error) {
    if (!(error instanceof RetainersError)) throw error
    const advice = error.code === 'too_large' ? '; --memory allows more' : ''
    throw new UsageError(`${job.file}: ${error.message}${advice}`)
  } finally {
    err.clear()
  }
}

/**
 * @param {string} file
 * @throws {UsageError}
 */
function checkFile (file) {
  try {
    if (!fs.statSync(file).isFile()) throw new UsageError(`expected a file, got ${file}`)
    fs.accessSync(file, fs.constants.R_OK)
  } catch (error) {
    if (error instanceof UsageError) throw error
    const { code, message } = /** @type {NodeJS.ErrnoException} */ (error)
    throw new UsageError(`cannot read ${file}: ${code === 'ENOENT' ? 'no such file' : message}`)
  }
}

/**
 * @param {string} file
 * @param {unknown} report
 */
function writeJson (file, report) {
  try {
    fs.writeFileSync(file, `${JSON.stringify(report, null, 2)}\n`)
  } catch (error) {
    throw new UsageError(`--out: ${/** @type {Error} */ (error).message}`)
  }
}

/**
 * @param {Findings} found
 * @param {{ file: string, earlier?: string }} job
 */
function reportOf (found, { file, earlier }) {
  const folder = process.cwd()
  const sources = Sources.here()
  return {
    schema: /** @type {const} */ (1),
    snapshot: file,
    earlier: earlier ?? null,
    ...found,
    packages: sumByPackage(found.findings, file => sources.packageName(file) ?? folderOf(file)),
    findings: found.findings.map(finding => ({
      sentence: sentenceOf(finding, { folder }),
      ...finding
    }))
  }
}

/** Name of the folder of a file, for an app without a manifest. @param {string} file */
const folderOf = file => path.basename(path.dirname(file)) || 'app'

/**
 * @param {ReturnType<typeof reportOf>} report
 * @param {{ verbose?: boolean, width: number }} options
 * @returns {import('./text/terminal').Line[]}
 */
function render (
  { snapshot, reachableBytes, nodeCount, added, findings, packages },
  { verbose, width }
) {
  const grown = added
    ? `; ${added.count.toLocaleString('en-US')} objects, ${size(added.bytes)}, came since`
    : ''
  /** @type {import('./text/terminal').Line[]} */
  const lines = [
    `${snapshot}: ${formatBytes(reachableBytes)} in ${nodeCount.toLocaleString('en-US')} objects${grown}`
  ]
  if (findings.length === 0) lines.push('', 'No pile of similar objects holds 1 % of the heap.')
  if (packages.length > 1) {
    const shares = packages.map(({ package: name, value }) => `${name} ${size(value)}`)
    lines.push(...wrap(`By package: ${shares.join(', ')}.`, width))
  }
  findings.forEach((finding, i) => {
    lines.push('')
    const [first, ...rest] = wrap(`- ${finding.sentence}.`, width)
    lines.push(i === 0 ? { text: first, style: 'bold' } : first, ...rest)
    for (const { count, className, retainedBytes } of finding.others.slice(0, 2)) {
      lines.push(`  beside ${count.toLocaleString('en-US')} × ${className}, ${size(retainedBytes)}`)
    }
    if (!verbose) return
    lines.push(...pathLines(finding, { folder: process.cwd() }).map(line => `    ${line}`))
  })
  return lines
}

module.exports = { command, checkFile, render, reportOf }
