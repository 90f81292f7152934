'use strict'

/**
 * `npm run bench:page` measures speed, size and smoothness of the exporter's page, in a real
 * browser, with real apps.
 *
 *   npm run bench:page                       all measures
 *   npm run bench:page -- --targets 300      with so many targets
 *
 * Ends with 1 if a first paint takes more than a second, or a verdict appears more than two seconds
 * after the API has it. It also ends with 1 if the compressed files of the page exceed 60 kB, or a
 * task of the page takes more than 100 ms with a hundred targets.
 */

const path = require('node:path')
const { fork, spawn } = require('node:child_process')
const { once } = require('node:events')
const { setTimeout: wait } = require('node:timers/promises')
const { median, max } = require('simple-statistics')
const { apps } = require('../lab')
const { createMemoryGroup } = require('../exporter/process/memory-group')
const { findTools, MISSING } = require('../scripts/system-tools')
const { startExporter, eventually } = require('../test/support/exporter')
const { openPage, closeBrowser } = require('../test/support/browser')
const { parseOptions } = require('./options')

const AGENT = path.join(__dirname, '../agent/index.js')
const FEEDER = path.join(__dirname, 'exporter-feeder.js')
const FED_SECONDS = 600
const LIMITS = { firstPaintMs: 1000, verdictMs: 2000, bytes: 60_000, taskMs: 100 }
const LOADS = 10
const FEW = 3
/** Code of a target that does a little of everything, ten times per second. */
const LIGHT =
  'const kept = []; setInterval(() => { for (let i = 0; i < 200; i++) kept[i] = { i, text: ' +
    'String(Math.random()) } }, 100)'
const given = parseOptions(__filename, {
  targets: { type: 'string', default: '100' }
})

const tools = findTools()
if (!tools) {
  console.error(MISSING)
  process.exit(2)
}
const { chromium } = tools
let wrong = false
/**
 * @param {string} what
 * @param {number} value
 * @param {number} limit
 * @param {string} unit
 */
const report = (what, value, limit, unit) => {
  if (value > limit) wrong = true
  console.log(
    `${value > limit ? 'WRONG' : 'right'}  ${what}: ${Math.round(value)} ${unit}, ${limit} allowed`
  )
}

/**
 * @type {{ child: import('node:child_process').ChildProcess, group?: ReturnType<typeof
 *   createMemoryGroup> }[]}
 */
const running = []
/**
 * @param {string} socket
 * @param {string} name
 * @param {string[]} args
 * @param {number} [limitBytes]
 */
function start (socket, name, args, limitBytes) {
  const group =
    limitBytes === undefined ? undefined : createMemoryGroup({ limitBytes, name: 'page' })
  const { command, args: wrapped } = group?.wrap(process.execPath, ['-r', AGENT, ...args]) ?? {
    command: process.execPath,
    args: ['-r', AGENT, ...args]
  }
  running.push({
    group,
    child: spawn(command, wrapped, {
      stdio: 'ignore',
      env: { ...process.env, NODE_OPTIONS: '', MEMWATCH_SOCKET: socket, MEMWATCH_NAME: name }
    })
  })
}
/**
 * @param {string} socket
 * @param {string} id of an app of the lab
 */
function startLab (socket, id) {
  const { script, nodeArgs = [], memoryLimitBytes } = /** @type {import('../lab').LabApp} */ (apps.find(app => app.id === id))
  start(socket, id, [...nodeArgs, script], memoryLimitBytes)
}
async function stopAll () {
  for (const { child, group } of running.splice(0)) {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL')
      await once(child, 'close')
    }
    await group?.remove()
  }
}

/**
 * @param {Awaited<ReturnType<typeof startExporter>>} exporter
 * @param {string} at
 * @returns {Promise<any>}
 */
const json = async (exporter, at) => (await exporter.get(`/api/v1/${at}`)).json()

/**
 * Measures first paint and transfer size of a page that is not in the cache.
 * @param {Awaited<ReturnType<typeof startExporter>>} exporter
 */
async function loads (exporter) {
  const paints = []
  let bytes = 0
  for (let i = 0; i < LOADS; i++) {
    const { page, close } = await openPage(chromium)
    const session = await page.context().newCDPSession(page)
    await session.send('Network.enable')
    bytes = 0
    /** @type {Set<string>} */
    const own = new Set()
    session.on('Network.responseReceived', ({ requestId, response }) => {
      if (/\/$|\/page\//.test(response.url)) own.add(requestId)
    })
    session.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
      if (own.has(requestId)) bytes += encodedDataLength
    })
    await page.goto(`${exporter.url}/`)
    await page.locator('tbody tr').first().waitFor()
    await page.waitForFunction(
      () => performance.getEntriesByName('first-contentful-paint').length > 0
    )
    paints.push(await page.evaluate(() => /** @type {any} */ (performance.getEntriesByName('first-contentful-paint')[0]).startTime))
    await close()
  }
  console.log(
    `first contentful paint: median ${median(paints).toFixed(0)} ms, worst ` +
      `${max(paints).toFixed(0)} of ${LOADS}`
  )
  report('first paint, worst', max(paints), LIMITS.firstPaintMs, 'ms')
  report('all that the page is made of', bytes, LIMITS.bytes, 'bytes')
}

/**
 * Measures the longest task of the page's thread while the list is open and filtered, a target is
 * opened, and its time range is changed.
 * @param {Awaited<ReturnType<typeof startExporter>>} exporter
 */
async function smoothness (exporter) {
  const { page, complaints, close } = await openPage(chromium)
  await page.addInitScript(() => {
    const tasks = /** @type {any} */ (globalThis).tasks = /** @type {number[]} */ ([])
    new PerformanceObserver(list => {
      for (const { duration } of list.getEntries()) tasks.push(duration)
    }).observe({ type: 'longtask', buffered: true })
  })
  await page.goto(`${exporter.url}/`)
  await page.locator(`tbody tr >> nth=${Number(given.targets) - 1}`).waitFor({ timeout: 20_000 })
  const tasks = async () => /** @type {number[]} */ (await page.evaluate(() => /** @type {any} */ (globalThis).tasks.splice(0)))
  const measured = async (/** @type {string} */ what, /** @type {() => Promise<unknown>} */ work) => {
    await tasks()
    await work()
    const found = await tasks()
    console.log(
      `${what}: ${found.length} tasks over 50 ` +
        `ms${found.length > 0 ? `, the longest ${max(found).toFixed(0)} ms` : ''}`
    )
    report(`longest task, ${what}`, found.length > 0 ? max(found) : 0, LIMITS.taskMs, 'ms')
  }
  await measured('the list, twenty seconds of it', () => wait(20_000))
  await measured('filtering', async () => {
    await page.getByRole('searchbox').pressSequentially('app-1', { delay: 100 })
    await page.getByRole('searchbox').fill('')
    await wait(1000)
  })
  await measured('one target, half a minute of it', async () => {
    await page.getByRole('link', { name: 'app-1', exact: true }).click()
    await page.locator('#chart-resources canvas').waitFor()
    await wait(30_000)
  })
  await measured('other time ranges', async () => {
    for (const range of ['1 h', '7 days', '10 min']) {
      await page.getByLabel(range, { exact: true }).check()
      await wait(2000)
    }
  })
  if (complaints.length > 0) throw new Error(complaints.join('\n'))
  await close()
}

/**
 * Measures the delay between a verdict in the API and on the page.
 * @param {Awaited<ReturnType<typeof startExporter>>} exporter
 */
async function latency (exporter) {
  const { page, close } = await openPage(chromium)
  for (const id of ['event-loop-blocked', 'semi-space-starvation']) {
    startLab(exporter.socket.path, id)
    await eventually(
      () => json(exporter, `targets?target=${id}`),
      found => found.length === 1,
      30_000
    )
    await page.goto(`${exporter.url}/#target=${id}`)
    await eventually(
      async () => (await json(exporter, `diagnoses?target=${id}`))[0]?.primary,
      Boolean,
      120_000
    )
    const began = performance.now()
    await page.locator('.band .state', { hasText: 'confirmed' }).waitFor()
    report(`${id} on the page after the API`, performance.now() - began, LIMITS.verdictMs, 'ms')
  }
  await close()
}

/**
 * Runs work with many targets, which one process feeds: a hundred processes would occupy the CPUs,
 * and tasks of the page would seem longer while they wait.
 * @param {Awaited<ReturnType<typeof startExporter>>} exporter
 * @param {number} count
 */
async function withMany (exporter, count) {
  const feeder = fork(FEEDER, [exporter.socket.path, String(count), String(FED_SECONDS), '1'])
  try {
    await once(feeder, 'message')
    await eventually(() => json(exporter, 'targets'), found => found.length >= count, 120_000)
    await smoothness(exporter)
  } finally {
    feeder.kill()
    await once(feeder, 'exit')
  }
}

async function main () {
  const exporter = await startExporter({ autoCaptures: false })
  try {
    console.log(`with ${FEW} targets`)
    for (let i = 1; i <= FEW; i++) start(exporter.socket.path, `light-${i}`, ['-e', LIGHT])
    await eventually(() => json(exporter, 'targets'), found => found.length === FEW, 120_000)
    await loads(exporter)
    await stopAll()
    console.log(`with ${given.targets} targets`)
    await withMany(exporter, Number(given.targets))
    await latency(exporter)
  } finally {
    await stopAll()
    await closeBrowser()
    await exporter.stop()
  }
  console.log(wrong ? 'WRONG' : 'right')
  process.exitCode = wrong ? 1 : 0
}

main()
