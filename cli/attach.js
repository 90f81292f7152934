'use strict'

const fs = require('node:fs')
const net = require('node:net')
const path = require('node:path')
const { once } = require('node:events')
const { setTimeout: wait } = require('node:timers/promises')
const { Command } = require('commander')
const { options } = require('@memwatch/exporter/config')
const { withApiOptions, callList } = require('./api')
const { attach } = require('./attachment/attachment')
const { findSubject } = require('./attachment/find-subject')
const { agentVariables, withAttachOptions } = require('./attachment/options')
const { NotFound, Refusal } = require('./attachment/refusal')
const { out, err } = require('./output')
const { UsageError } = require('./usage-error')

/** Time for the first frame to reach the exporter. */
const HEARD_MS = 5000
const POLL_MS = 100
/** A Node.js starts within this time of its process; each container has a process 1. */
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
agent through it, and closes it. Node.js prints that on stderr of the process. Nothing is sent to a
process that handles SIGUSR1 itself, or does not handle it. Counters begin at the attach; memwatch
detach ends the agent. docs/attach.md lists each reason to refuse.

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
 * @returns {Promise<number>} exit status; 1: the process refused
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
 * @param {import('./api').ApiOptions & import('./attachment/options').AttachOptions &
 *   { socket?: string, json?: boolean }} given
 */
async function attachTo (text, given) {
  const subject = findSubject(text)
  subject.check(given)
  const socket = given.socket ?? (process.env[options.socket.env] || options.socket.default)
  await checkSocket(subject, socket)
  const { node, workers } = await attach(subject, {
    folder: given.agent,
    ...agentVariables(given, socket)
  })
  const target = await findTarget(subject, given)
  if (given.json) out.json({ pid: subject.pid, node, workers, target: target ?? null })
  else out.say(describe({ subject, node, workers, target, socket }))
  return 0
}

/**
 * @param {object} done
 * @param {import('./attachment/subject').Subject} done.subject
 * @param {string} done.node
 * @param {import('./attachment/attachment').Workers} done.workers
 * @param {string} [done.target]
 * @param {string} done.socket
 */
function describe ({ subject, node, workers, target, socket }) {
  const also = workers.all === 0 ? '' : `, in ${workers.reached} of ${workers.all} workers, too`
  const where = target === undefined ? `and sends to ${socket}` : `and reports as ${target}`
  return `${subject.name}, Node ${node}: the agent counts from now on${also}, ${where}.`
}

/**
 * An agent without an exporter would wait in the process for nothing.
 * @param {import('./attachment/subject').Subject} subject
 * @param {string} text address as the process sees it
 * @throws {UsageError | Refusal}
 */
async function checkSocket (subject, text) {
  const address = readSocket(text)
  if (!('path' in address)) {
    if (subject.sharesNamespace('net')) await connect(address, text)
    return
  }
  const file = subject.outside(path.resolve(address.path))
  await connect({ path: file }, text)
  const { uid, gid, mode } = fs.statSync(file)
  const isOpen = subject.user === 0 || uid === subject.user || (mode & 0o002) !== 0 ||
    ((mode & 0o020) !== 0 && subject.groups.includes(gid))
  if (!isOpen) {
    subject.refuse(
      `runs as user ${subject.user}, and may not write to ${text} of user ${uid}: name the socket ` +
        'of an exporter of that user by --socket'
    )
  }
}

/** @param {string} text */
function readSocket (text) {
  try {
    return options.socket.read(text)
  } catch (error) {
    throw new UsageError(`--socket: ${/** @type {Error} */ (error).message}`)
  }
}

/**
 * @param {net.NetConnectOpts} address
 * @param {string} text
 */
async function connect (address, text) {
  const socket = net.connect(address)
  try {
    await once(socket, 'connect')
  } catch (error) {
    throw new UsageError(
      `--socket: no exporter answers at ${text}: ${/** @type {Error} */ (error).message}; start one ` +
        'with memwatch exporter, or name its address'
    )
  } finally {
    socket.destroy()
  }
}

/**
 * @param {import('./attachment/subject').Subject} subject
 * @param {import('./api').ApiOptions} given
 * @returns {Promise<string | undefined>} name of the target; undefined: no exporter says so
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
