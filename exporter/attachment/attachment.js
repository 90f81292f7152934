'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { options } = require('@memwatch/agent/protocol/config')
const { ANSWER_MS, withInspector } = require('./inspector')
const { startAgent, stopAgent } = require('./in-target')

/** Explanations of the reasons that the process itself returns. @type {Record<string, string>} */
const REFUSALS = Object.freeze({
  running: 'has an agent already: memwatch top lists it; memwatch detach ends an attached one',
  permission:
    'runs under the permission model of Node.js, which denies the agent its files: start it with ' +
      'node -r memwatch/agent instead',
  disabled: 'has MEMWATCH_DISABLED=1 in its environment, which turns the agent off: unset it there',
  late: 'answered too late: its event loop is blocked; try again',
  absent: 'has no agent: memwatch attach starts one'
})

/** Folder of the agent that is installed with this program. */
const agentFolder = () => path.dirname(require.resolve('@memwatch/agent'))

/**
 * Number of workers in the process, and number of those in which the work succeeded.
 * @typedef {{ reached: number, all: number }} Workers
 */

/**
 * @param {import('./subject').Subject} subject
 * @param {string} [folder] folder of the agent, as the process sees it
 * @throws {import('./refusal').Refusal}
 */
function checkAgentFiles (subject, folder = agentFolder()) {
  const file = path.join(folder, 'begin.js')
  const seen = subject.outside(file)
  try {
    const isReadable = (/** @type {fs.Stats} */ { mode, uid }) =>
      (mode & 0o004) !== 0 || uid === subject.user || subject.user === 0
    if (isReadable(fs.statSync(seen))) return
  } catch {} // The file is absent.
  subject.refuse(
    `cannot read the agent at ${file}: copy it to a folder that the process sees, for example ` +
      `with memwatch install-agent /proc/${subject.pid}/root/tmp, and give its path: --agent ` +
      '/tmp/agent, or --attach-agent of the exporter'
  )
}

/**
 * Starts the agent in a process, and in each of its workers that answers.
 * @param {import('./subject').Subject} subject a checked process
 * @param {object} given
 * @param {string} given.socket address of the exporter, as the process sees it
 * @param {string} [given.folder] folder of the agent, as the process sees it
 * @param {boolean} [given.allowForcedGc] true to let the exporter request full GCs
 * @returns {Promise<{ node: string, workers: Workers }>}
 * @throws {import('./refusal').Refusal}
 */
async function attach (subject, { socket, folder = agentFolder(), allowForcedGc = false }) {
  checkAgentFiles(subject, folder)
  // A variable of the process itself overrides this default.
  const defaults = { [options.allocatorAccess.env]: 'read' }
  const env = {
    [options.socket.env]: socket,
    ...(allowForcedGc && { [options.forcedGc.env]: 'allow' })
  }
  return await inAllThreads(subject, startAgent, name => ({
    folder,
    // Workers get the name that the main thread reports, because a worker may report first, under
    // another name.
    env: name === undefined ? env : { ...env, [options.name.env]: name },
    defaults,
    untilUnixMs: Date.now() + ANSWER_MS
  }))
}

/**
 * Stops the agent in a process and in its workers.
 * @param {import('./subject').Subject} subject a checked process
 * @returns {Promise<{ node: string, workers: Workers }>}
 * @throws {import('./refusal').Refusal}
 */
const detach = subject => inAllThreads(subject, stopAgent, () => ({}))

/**
 * @param {import('./subject').Subject} subject
 * @param {typeof startAgent | typeof stopAgent} work
 * @param {(name?: string) => any} given name: name of the main thread's app, for its workers
 */
const inAllThreads = (subject, work, given) => withInspector(subject, async inspector => {
  const { answer, error } = await inspector.evaluate(/** @type {any} */ (work), given())
  if (error) subject.refuse(`could not load or stop the agent: ${error}`)
  if (answer.refused) subject.refuse(REFUSALS[answer.refused] ?? `refuses: ${answer.refused}`)
  const answers = await inspector.evaluateInWorkers(
    /** @type {any} */ (work), given(typeof answer.name === 'string' ? answer.name : undefined)
  )
  const reached = answers.filter(({ answer }) => answer && !answer.refused).length
  return { node: inspector.node, workers: { reached, all: answers.length } }
})

module.exports = { attach, detach, checkAgentFiles }
