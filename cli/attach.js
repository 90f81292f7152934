'use strict'

const { setTimeout: wait } = require('node:timers/promises')
const { Command } = require('commander')
const { attach } = require('@memwatch/exporter/attachment/attachment')
const { checkExporter } = require('@memwatch/exporter/attachment/exporter-socket')
const { NotFound, Refusal } = require('@memwatch/exporter/attachment/refusal')
const { options } = require('@memwatch/exporter/config')
const { withApiOptions, callList } = require('./program/api')
const { findSubject } = require('./attachment/find-subject')
const { withAttachOptions } = require('./attachment/options')
const { out, err } = require('./program/output')
const { UsageError } = require('./program/usage-error')

/** Time for the first frame to reach the exporter. */
const HEARD_MS = 5000
const POLL_MS = 100
/**
 * Tolerance between the start of a process and the start that its agent reports. Pids alone do not
 * identify a process, as each container has a process 1.
 */
const SAME_START_MS = 10_000

const command = withAttachOptions(withApiOptions(new Command('attach')))
  .description('Load the agent into a running process, without a restart.')
  .argument('<process>', 'process id, or name of the app: of its package or script')
  .option(
    options.socket.flag,
    'address of the exporter, as the process sees it ' +
      `[${options.socket.env}] (default: ${options.socket.default})`
  )
  .option('--json', 'print the result as JSON on stdout, and nothing else')
  .allowExcessArguments(false)
  .addHelpText(
    'after',
    `
memwatch opens the inspector of the process by SIGUSR1 on a loopback port for a moment, loads the
agent through it, and closes it. Node.js prints two lines about the inspector on stderr of the
process. memwatch sends no signal to a process that has its own listener for SIGUSR1, or in which
SIGUSR1 has no handler at all. Counters begin at the attach; memwatch detach ends the agent.
docs/attach.md lists each reason to refuse.

Exit status: 0; 1 when the process cannot be attached to; 2 when it does not exist, or no exporter
answers.

Examples:
  $ memwatch attach 4711
  $ memwatch attach shop --socket /run/memwatch/exporter.sock
  $ memwatch attach 1 --agent /tmp/memwatch/agent     the process is in another container`
  )
  .action(async (text, given) => {
    process.exitCode = await orRefused('attach', () => attachTo(text, given))
  })

/**
 * @param {string} name of the command
 * @param {() => Promise<number>} work
 * @returns {Promise<number>} exit status; 1 if the process cannot be attached to
 * @throws {UsageError} if there is no such process
 */
async function orRefused (name, work) {
  try {
    return await work()
  } catch (error) {
    if (error instanceof NotFound) throw new UsageError(error.message)
    if (!(error instanceof Refusal)) throw error
    err.say(`memwatch ${name}: ${error.message}.`)
    return 1
  }
}

/**
 * @param {string} text
 * @param {import('./program/api').ApiOptions & import('./attachment/options').AttachOptions &
 *   { socket?: string, json?: boolean }} given
 */
async function attachTo (text, given) {
  const subject = findSubject(text)
  subject.check(given)
  const socket = given.socket ?? (process.env[options.socket.env] || options.socket.default)
  readSocket(socket)
  await checkExporter(subject, socket)
  const { node, workers } = await attach(subject, {
    socket,
    folder: given.agent,
    allowForcedGc: given.allowForcedGc
  })
  const target = await findTarget(subject, given)
  if (given.json) out.json({ pid: subject.pid, node, workers, target: target ?? null })
  else out.say(describe({ subject, node, workers, target, socket }))
  return 0
}

/**
 * @param {object} done
 * @param {import('@memwatch/exporter/attachment/subject').Subject} done.subject
 * @param {string} done.node
 * @param {import('@memwatch/exporter/attachment/attachment').Workers} done.workers
 * @param {string} [done.target]
 * @param {string} done.socket
 */
function describe ({ subject, node, workers, target, socket }) {
  const also = workers.all === 0 ? '' : `, in ${workers.reached} of ${workers.all} workers, too`
  const where = target === undefined ? `and sends to ${socket}` : `and reports as ${target}`
  return `${subject.name}, Node ${node}: the agent counts from now on${also}, ${where}.`
}

/**
 * @param {string} text
 * @throws {UsageError}
 */
function readSocket (text) {
  try {
    return options.socket.read(text)
  } catch (error) {
    throw new UsageError(`--socket: ${/** @type {Error} */ (error).message}`)
  }
}

/**
 * @param {import('@memwatch/exporter/attachment/subject').Subject} subject
 * @param {import('./program/api').ApiOptions} given
 * @returns {Promise<string | undefined>} name of the target; undefined if no exporter reports it
 */
async function findTarget (subject, given) {
  for (const began = performance.now(); performance.now() - began < HEARD_MS; await wait(POLL_MS)) {
    const targets = await callList({ ...given, timeoutMs: HEARD_MS }, 'targets').catch(error => {
      if (!(error instanceof UsageError)) throw error
    })
    if (!targets) return undefined
    const found = targets.find(({ pid, thread, up, lastFrameUnixMs, uptimeSeconds }) =>
      pid === subject.ownPid && thread === 'main' && up &&
        Math.abs(lastFrameUnixMs - 1000 * uptimeSeconds - subject.startedAtUnixMs) < SAME_START_MS)
    if (found) return found.target
  }
}

module.exports = { command, orRefused }
