'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { Command } = require('commander')
const { options: agentOptions } = require('@memwatch/agent/protocol/config')
const { defaultSocketPath } = require('@memwatch/agent/protocol/socket')
const {
  describeProcess, isStarter, viewProcess
} = require('@memwatch/exporter/process/process-view')
const { withApiOptions, callList, NoExporterError, RefusedError } = require('./program/api')
const { unknown, problem, ok, whyUnread } = require('./checks/check')
const { TIMEOUT_MS, checkNode, checkSocket } = require('./checks/exporter-checks')
const {
  checkAgent, checkEnvironment, checkFlags, checkAllocator
} = require('./checks/process-checks')
const {
  checkLimits, checkGcCounter, checkFixes, checkNeighbours
} = require('./checks/target-checks')
const { subjectsOf, hasAgent } = require('./checks/subjects')
const { out } = require('./program/output')
const { UsageError } = require('./program/usage-error')
const { wrap } = require('./text/wrap')

/** @typedef {import('./checks/check').Check} Check */
/** @typedef {import('./checks/check').Subject} Subject */
/** @typedef {{ title: string, pid: number | null, checks: Check[] }} Section */

const SYMBOLS = { ok: '✓', problem: '✗', unknown: '?' }
const STYLES = Object.freeze(/** @type {const} */ ({ problem: 'red', unknown: 'yellow' }))
/** Upper bound of examined processes if the user names none. */
const MOST_PROCESSES = 8

const command = withApiOptions(new Command('doctor'))
  .description(
    'Check exporter, agent, limits and allocator, and that flags and variables reached the process.'
  )
  .argument(
    '[target]',
    'name of a target, as memwatch top lists it, or a process id (default: all processes with ' +
      'the agent)'
  )
  .option('--json', 'print the checks as JSON on stdout, and nothing else')
  .allowExcessArguments(false)
  .addHelpText(
    'after',
    `
Symbols: ✓ correct, ✗ a problem, with its solution, ? unknown. doctor reads /proc: run it as the
user of the app, in the container of the app or in a sidecar that shares the process namespace.

Exit status: 0 without problems; 1 with a problem; 2 when an option is invalid, or the target or
process does not exist.

Examples:
  $ memwatch doctor
  $ memwatch doctor shop
  $ memwatch doctor 4711 --json | jq '.sections[].checks[] | select(.state == "problem")'
  $ kubectl exec shop-5d4c7f9b8-x2k4q -c memwatch -- memwatch doctor`
  )
  .action(async (name, given) => { process.exitCode = await examine(name, given) })

/**
 * @param {string | undefined} name
 * @param {import('./program/api').ApiOptions & { json?: boolean }} given
 * @returns {Promise<number>} exit status
 */
async function examine (name, given) {
  const { check, targets, verdicts } = await checkExporter(given)
  const all = subjectsOf(targets ?? [], verdicts ?? [])
  const subjects = name === undefined ? all.filter(hasAgent) : [named(name, all, targets)].flat()
  /** @type {Section[]} */
  const sections = [{
    title: 'memwatch',
    pid: null,
    checks: [checkNode(), check, ...name === undefined ? [checkProcesses(all)] : []]
  }]
  if (subjects.length === 0) sections[0].checks.push(await checkSocket(ownAddress()))
  for (const subject of subjects.slice(0, MOST_PROCESSES)) {
    sections.push(await examineProcess(subject, { all, answers: targets !== undefined }))
  }
  const problems = sections.flatMap(({ checks }) => checks).filter(({ state }) => state === 'problem')
  if (given.json) out.json({ problems: problems.length, sections })
  else out.say(...render(sections, subjects.length, { width: Math.min(out.columns || 100, 120) }))
  return problems.length > 0 ? 1 : 0
}

/**
 * @param {import('./program/api').ApiOptions} given
 * @returns {Promise<{ check: Check, targets?: any[], verdicts?: any[] }>} the lists of the API, if
 *   it answers
 * @throws {UsageError} for an invalid option
 */
async function checkExporter (given) {
  const options = { ...given, timeoutMs: TIMEOUT_MS }
  try {
    const targets = await callList(options, 'targets')
    const verdicts = await callList(options, 'diagnoses')
    const names = [...new Set(targets.map(({ target }) => target))]
    const list = names.length === 0 ? 'no target' : names.slice(0, 5).join(', ')
    const more = names.length > 5 ? ` and ${names.length - 5} more` : ''
    const check = ok('exporter', `The exporter at ${given.url} answers: ${list}${more}.`)
    return { check, targets, verdicts }
  } catch (error) {
    if (error instanceof NoExporterError) {
      return {
        check: problem(
          'exporter',
          `No exporter answers at ${given.url}: ${error.reason}.`,
          'Start memwatch exporter, or give its address with --url.'
        )
      }
    }
    if (!(error instanceof RefusedError)) throw error
    return {
      check: problem(
        'exporter',
        `The exporter at ${given.url} refuses: ${error.message}`,
        'Give the file with its token with --token-file.'
      )
    }
  }
}

/**
 * @param {string} name name of a target, or process id
 * @param {Subject[]} all
 * @param {any[] | undefined} targets undefined if no exporter answers
 * @returns {Subject | []} empty if no exporter can identify the process
 * @throws {UsageError} if the target or process does not exist
 */
function named (name, all, targets) {
  const found = all.find(({ target }) => target?.target === name) ??
    all.find(({ pid }) => String(pid) === name)
  if (found) return found
  if (/^\d+$/.test(name)) {
    const other = viewProcess(Number(name)) ? '; this process runs another program' : ''
    throw new UsageError(`no Node.js process ${name}${other}`)
  }
  if (targets === undefined) return []
  const names = [...new Set(targets.map(({ target }) => target))]
  throw new UsageError(`unknown target: ${name}; known targets: ${names.join(', ') || 'none'}`)
}

/**
 * @param {Subject[]} all
 * @returns {Check}
 */
function checkProcesses (all) {
  const apps = all.filter(({ view }) => !view || !isStarter(view))
  if (apps.length === 0) {
    return unknown(
      'processes',
      'No Node.js process is visible here.',
      'Run doctor in the container of the app, or with shareProcessNamespace in its pod.'
    )
  }
  const without = apps.filter(app => !hasAgent(app))
  const closed = without.filter(({ settings }) => settings === null)
  const list = without.slice(0, MOST_PROCESSES)
    .map(({ pid, view }) => view ? describeProcess(view) : `process ${pid}`).join(', ')
  const text = `${apps.length - without.length} of ${apps.length} Node.js processes have the ` +
    `agent${list ? `; without: ${list}` : ''}.`
  if (without.length < apps.length) return ok('processes', text)
  if (closed.length === apps.length) return unknown('processes', whyUnread(closed[0]))
  return problem(
    'processes', text,
    'Start the app with node -r memwatch/agent, or NODE_OPTIONS="--require memwatch/agent".'
  )
}

/**
 * @param {Subject} subject
 * @param {{ all: Subject[], answers: boolean }} others answers: true if an exporter answers
 * @returns {Promise<Section>}
 */
async function examineProcess (subject, { all, answers }) {
  const { pid, view, target } = subject
  const agent = checkAgent(subject, { answers })
  const isLeftAlone = view !== undefined && isStarter(view) && !target
  return {
    title: target ? `${target.target}, pid ${pid}, Node ${target.node}` : `pid ${pid}`,
    pid,
    checks: isLeftAlone
      ? [agent]
      : [
          agent,
          ...await checkSettings(subject),
          checkLimits(subject),
          ...checkNeighbours(subject, { all }),
          checkGcCounter(subject),
          ...checkFixes(subject)
        ]
  }
}

/**
 * Checks a process by /proc.
 * @param {Subject} subject
 * @returns {Promise<Check[]>}
 */
async function checkSettings ({ view, settings, ...rest }) {
  if (!view || !settings) {
    // Without a target, checkAgent has already reported why the process is unreadable.
    return rest.target ? [unknown('process', whyUnread({ view, pid: rest.pid }))] : []
  }
  const seen = { ...rest, view, settings }
  return [
    await checkSocketOf(seen),
    ...checkEnvironment(seen),
    ...checkFlags(seen),
    ...checkAllocator(seen)
  ]
}

/** The address where agents of this user connect. */
const ownAddress = () =>
  agentOptions.socket.read(process.env[agentOptions.socket.env] || agentOptions.socket.default)

/**
 * Checks the socket to which the agent of a process connects.
 * @param {import('./checks/check').Seen} subject
 * @returns {Promise<Check>}
 */
async function checkSocketOf ({ pid, view }) {
  const { env, user, groups } = view
  const hasToken = Boolean(env?.[agentOptions.tokenFile.env])
  const text = env?.[agentOptions.socket.env]
  // os.tmpdir() follows the same rule in the process of the app.
  const folder = env?.TMPDIR || env?.TMP || env?.TEMP || '/tmp'
  const root = linkOf(pid, 'ns/mnt') === linkOf('self', 'ns/mnt') ? '' : `/proc/${pid}/root`
  const cwd = linkOf(pid, 'cwd') ?? '/'
  try {
    const address = agentOptions.socket.read(
      !text
        ? defaultSocketPath({ user, folder })
        : text.startsWith('tcp://') ? text : path.resolve(cwd, text)
    )
    return await checkSocket(address, { user, groups, isDefault: !text, hasToken, root })
  } catch (error) {
    return problem(
      'socket', `${agentOptions.socket.env}: ${/** @type {Error} */ (error).message}.`,
      'Set the variable to a path, or to tcp://HOST:PORT.'
    )
  }
}

/**
 * @param {number | 'self'} pid
 * @param {string} name
 */
function linkOf (pid, name) {
  try {
    return fs.readlinkSync(`/proc/${pid}/${name}`)
  } catch {
    return undefined // The process is gone, or belongs to another user.
  }
}

/**
 * @param {Section[]} sections
 * @param {number} processes number of processes that could be examined
 * @param {{ width: number }} options
 * @returns {import('./text/terminal').Line[]}
 */
function render (sections, processes, { width }) {
  const lines = sections.flatMap(({ title, checks }, i) => [
    ...i > 0 ? [''] : [],
    title,
    ...checks.flatMap(({ state, text, advice }) => [
      ...hang(SYMBOLS[state], text, width)
        .map(line => state === 'ok' ? line : { text: line, style: STYLES[state] }),
      ...advice ? hang(' ', `→ ${advice}`, width) : []
    ])
  ])
  const more = processes - (sections.length - 1)
  return more > 0 ? [...lines, '', `${more} more: memwatch doctor PID examines one.`] : lines
}

/**
 * @param {string} symbol
 * @param {string} text
 * @param {number} width
 * @returns {string[]} lines that hang below the symbol
 */
function hang (symbol, text, width) {
  const [first, ...rest] = wrap(text, width - 4)
  return [`  ${symbol} ${first}`, ...rest.map(line => `    ${line}`)]
}

module.exports = { command }
