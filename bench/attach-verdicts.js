'use strict'

/**
 * `npm run bench:attach-verdicts` compares verdicts after an attach with those of a preloaded
 * agent. Each app of the lab runs twice in a memory cgroup. One run has a preloaded agent and is
 * watched from its start. In the other run memwatch attaches at half of the app's time, and watches
 * for the same duration, or until the app ends. Full GCs on command are allowed in both.
 *
 *   npm run bench:attach-verdicts                        every app, some three hours
 *   npm run bench:attach-verdicts -- --only js-heap-leak,healthy-steady
 *   npm run bench:attach-verdicts -- --at-once 4         apps at the same time
 *
 * Two runs are the same if both report the same diagnosis first, in the same state: confirmed,
 * suspected or none. Ends with 1 if fewer than 95 % are the same, or if a problem is confirmed in a
 * healthy app.
 */

const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { setTimeout: wait } = require('node:timers/promises')
const { apps } = require('@memwatch/lab')
const { Subject } = require('../exporter/attachment/subject')
const { watchCommand } = require('../cli/watch/watch-command')
const { watchProcess } = require('../cli/watch/watch-process')
const { createMemoryGroup } = require('../exporter/process/memory-group')
const { parseOptions } = require('./options')

const LEAST_SHARE = 0.95
/**
 * First inspector port. Each app has a port of its own, because the default port of Node.js may be
 * in use.
 */
const FIRST_PORT = 9400

const given = parseOptions(__filename, {
  only: { type: 'string' },
  'at-once': { type: 'string', default: '1' }
})

/** @typedef {{ diagnosis: string | null, state: string, text: string }} Found */
/** @typedef {{ app: import('@memwatch/lab').LabApp, before: Found, after: Found, isSame: boolean }} Row */

/**
 * @param {import('../cli/watch/watch-command').Report} report
 * @returns {Found} most urgent finding of all threads
 */
function findingOf ({ targets }) {
  const order = ['confirmed', 'suspected', 'undecided', 'limited', 'ok']
  const [first] = targets.map(({ headline }) => headline)
    .sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state))
  if (!first) return { diagnosis: null, state: 'none', text: 'no frame' }
  const open = first.open.length > 0 ? `: ${first.open.join(', ')}` : ''
  return {
    diagnosis: first.diagnosis,
    state: first.diagnosis ? first.state : 'none',
    text: `${first.state}${first.diagnosis ? ` ${first.diagnosis}` : open}`
  }
}

/**
 * @param {import('@memwatch/lab').LabApp} app
 * @param {(command: string[], env: NodeJS.ProcessEnv) =>
 *   Promise<{ report: import('../cli/watch/watch-command').Report }>} watch
 */
async function inGroup ({ id, script, nodeArgs = [], memoryLimitBytes, limitOnParent }, watch) {
  const port = FIRST_PORT + apps.findIndex(app => app.id === id)
  const group = createMemoryGroup({
    limitBytes: memoryLimitBytes, onParent: limitOnParent, name: `attach-${id}`
  })
  try {
    const { command, args } = group.wrap(process.execPath, [
      `--inspect-port=${port}`, ...nodeArgs, script
    ])
    const { report } = await watch([command, ...args], { ...process.env, MEMWATCH_NAME: id })
    return findingOf(report)
  } finally {
    await group.remove()
  }
}

/** @param {import('@memwatch/lab').LabApp} app */
const preloaded = app => inGroup(app, (command, env) =>
  watchCommand({ command, env, stdout: 2, forSeconds: app.seconds }))

/** @param {import('@memwatch/lab').LabApp} app */
const attached = app => inGroup(app, async ([file, ...args], env) => {
  const child = spawn(file, args, { env, stdio: 'ignore' })
  const ended = once(child, 'exit')
  try {
    await wait(500 * app.seconds)
    const subject = new Subject(/** @type {number} */ (child.pid))
    subject.check()
    return await watchProcess({
      subject,
      given: { allowForcedGc: true },
      forSeconds: app.seconds,
      abort: new AbortController().signal
    })
  } finally {
    child.kill('SIGKILL')
    await ended
  }
})

/**
 * @param {import('@memwatch/lab').LabApp} app
 * @returns {Promise<Row>}
 */
async function compare (app) {
  const failed = (/** @type {Error} */ { message }) =>
    ({ diagnosis: null, state: 'failed', text: message })
  const before = await preloaded(app).catch(failed)
  const after = await attached(app).catch(failed)
  const isSame = after.state !== 'failed' && before.diagnosis === after.diagnosis &&
    before.state === after.state
  console.log(
    `${isSame ? 'same ' : 'OTHER'}  ${app.id.padEnd(36)} preloaded: ${before.text.padEnd(44)} ` +
      `attached: ${after.text}`
  )
  return { app, before, after, isSame }
}

/** @param {Row} row row with a healthy app that got a confirmed finding */
const isWrong = ({ app, after }) => app.diagnosis === null && after.state === 'confirmed'

async function main () {
  const names = given.only?.split(',')
  const chosen = apps.filter(({ id }) => names?.includes(id) ?? true)
  const waiting = [...chosen]
  /** @type {Row[]} */
  const rows = []
  await Promise.all(Array.from({ length: Number(given['at-once']) }, async () => {
    for (let app = waiting.shift(); app; app = waiting.shift()) rows.push(await compare(app))
  }))
  const same = rows.filter(({ isSame }) => isSame).length
  const wrong = rows.filter(isWrong).length
  console.log(`\n${same} of ${rows.length} the same, ${wrong} healthy apps confirmed to be ill`)
  process.exitCode = same >= LEAST_SHARE * rows.length && wrong === 0 ? 0 : 1
}

main()
