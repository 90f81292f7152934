'use strict'

/**
 * `npm run bench:attach-verdicts`: are the verdicts those of a preloaded agent? Each app of the lab
 * runs twice in a memory cgroup: once preloaded from its start, and once attached to at half of its
 * time, until its end. Full GCs on command are allowed in both.
 *
 *   npm run bench:attach-verdicts                        every app, some two hours
 *   npm run bench:attach-verdicts -- --only js-heap-leak,healthy-steady
 *   npm run bench:attach-verdicts -- --as-long           watched as long as the preloaded run
 *
 * Two runs are the same if they found the same diagnosis first, whether it is confirmed or
 * suspected. Ends with 1 below 95 %.
 */

const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { setTimeout: wait } = require('node:timers/promises')
const { parseArgs } = require('node:util')
const { apps } = require('@memwatch/lab')
const { Subject } = require('../exporter/attachment/subject')
const { watchCommand } = require('../cli/watch-command')
const { watchProcess } = require('../cli/watch-process')
const { createMemoryGroup } = require('../exporter/process/memory-group')

const LEAST_SHARE = 0.95

const { values: given } = parseArgs({
  options: { only: { type: 'string' }, 'as-long': { type: 'boolean', default: false } }
})

/**
 * @param {import('../cli/watch-command').Report} report
 * @returns {{ diagnosis: string | null, text: string }} most urgent finding of all threads
 */
function findingOf ({ targets }) {
  const order = ['confirmed', 'suspected', 'undecided', 'limited', 'ok']
  const [first] = targets.map(({ headline }) => headline)
    .sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state))
  if (!first) return { diagnosis: null, text: 'no frame' }
  const open = first.open.length > 0 ? `: ${first.open.join(', ')}` : ''
  return {
    diagnosis: first.diagnosis,
    text: `${first.state}${first.diagnosis ? ` ${first.diagnosis}` : open}`
  }
}

/**
 * @param {import('@memwatch/lab').LabApp} app
 * @param {(command: string[], env: NodeJS.ProcessEnv) =>
 *   Promise<{ report: import('../cli/watch-command').Report }>} watch
 */
async function inGroup ({ id, script, nodeArgs = [], memoryLimitBytes, limitOnParent }, watch) {
  const group = createMemoryGroup({
    limitBytes: memoryLimitBytes, onParent: limitOnParent, name: `attach-${id}`
  })
  try {
    const { command, args } = group.wrap(process.execPath, [...nodeArgs, script])
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
      forSeconds: given['as-long'] ? app.seconds : app.seconds / 2,
      abort: new AbortController().signal
    })
  } finally {
    child.kill('SIGKILL')
    await ended
  }
})

async function main () {
  const names = given.only?.split(',')
  const chosen = apps.filter(({ id }) => names?.includes(id) ?? true)
  let same = 0
  for (const app of chosen) {
    const before = await preloaded(app).catch(error => ({ diagnosis: 'error', text: error.message }))
    const after = await attached(app).catch(error => ({ diagnosis: 'failed', text: error.message }))
    const isSame = before.diagnosis === after.diagnosis
    if (isSame) same++
    console.log(
      `${isSame ? 'same ' : 'OTHER'}  ${app.id.padEnd(36)} preloaded: ${before.text.padEnd(44)} ` +
        `attached: ${after.text}`
    )
  }
  console.log(`\n${same} of ${chosen.length} the same`)
  process.exitCode = same >= LEAST_SHARE * chosen.length ? 0 : 1
}

main()
