'use strict'

/**
 * `npm run bench:anatomy` measures accuracy and cost of the RSS breakdown. It has three parts:
 *
 *   trim: fragmenting lab apps on each Node and allocator. Compares the predicted result of
 *     malloc_trim, with and without a query of malloc, with the real one.
 *   parts: every lab app. Prints the unexplained share of RSS, and checks that the parts add up.
 *   cost: main-thread time of a scan, by RSS and by the kinds of memory.
 *
 *   npm run bench:anatomy -- --part trim --nodes /path/to/node20:/path/to/node24 --allocators
 *     glibc,jemalloc
 *   npm run bench:anatomy -- --part parts,cost --write       writes docs/anatomy.md
 *
 * About half a minute for each app, Node and allocator. Results in --out are not measured again, so
 * an interrupted bench continues; --recorded runs nothing.
 */

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFileSync, spawn } = require('node:child_process')
const { once } = require('node:events')
const { setTimeout: wait } = require('node:timers/promises')
const { apps } = require('../lab')
const { createMemoryGroup } = require('../exporter/process/memory-group')
const { Exporter } = require('../exporter/exporter')
const { anatomyIn } = require('../engine/signals/anatomy-in')
const { scanOf } = require('../engine/memory/scan')
const { anatomyPage } = require('./anatomy-page')
const { parseOptions } = require('./options')

const AGENT = path.join(__dirname, '../agent/index.js')
const LIBRARIES = {
  glibc: undefined,
  jemalloc: 'libjemalloc.so.2',
  mimalloc: 'libmimalloc.so.2',
  tcmalloc: 'libtcmalloc_minimal.so.4'
}
/** Sizes at which the cost of a scan is measured, in MiB of Buffers and of heap objects. */
const SHAPES = [[50, 20], [900, 50], [50, 900], [450, 450], [4000, 50]]
const COST_SCRIPT = path.join(__dirname, 'look-cost.js')

const given = parseOptions(__filename, {
  part: { type: 'string', default: 'trim,parts,cost' },
  nodes: { type: 'string', default: process.execPath },
  allocators: { type: 'string', default: Object.keys(LIBRARIES).join(',') },
  apps: { type: 'string' },
  seconds: { type: 'string', default: '32' },
  lanes: { type: 'string', default: '2' },
  out: { type: 'string', default: path.join(os.tmpdir(), 'memwatch-anatomy') },
  recorded: { type: 'boolean', default: false },
  write: { type: 'boolean', default: false }
})
const parts = given.part.split(',')
const nodes = given.nodes
  .split(':')
  .map(node => ({
    node,
    major: execFileSync(node, ['-p', 'process.versions.node.split(".")[0]'], {
      encoding: 'utf8'
    }).trim()
  }))
fs.mkdirSync(given.out, { recursive: true })

/**
 * Runs an app under an exporter for some seconds, then measures.
 * @template T
 * @param {import('../lab').LabApp} app
 * @param {string} node
 * @param {NodeJS.ProcessEnv} env
 * @param {(url: string, targets: import('../engine/history/target').Target[]) => Promise<T> | T}
 *   ask
 */
async function watched (app, node, env, ask) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-anatomy-'))
  const group = createMemoryGroup({
    limitBytes: app.memoryLimitBytes,
    onParent: app.limitOnParent,
    name: `anatomy-${app.id}`
  })
  const exporter = new Exporter({
    listen: { host: '127.0.0.1', port: 0 },
    socket: { path: path.join(folder, 's') },
    compat: false,
    maxTargets: 64,
    logLevel: 'silent'
  })
  const { listen } = await exporter.start()
  const { command, args } = group.wrap(node, ['-r', AGENT, ...app.nodeArgs ?? [], app.script])
  const child = spawn(command, args, {
    stdio: 'ignore',
    env: { ...process.env, ...env, MEMWATCH_SOCKET: path.join(folder, 's'), MEMWATCH_NAME: app.id }
  })
  try {
    const ended = once(child, 'close').then(() => true)
    if (await Promise.race([ended, wait(Number(given.seconds) * 1000, false)])) return undefined
    return await ask(`http://127.0.0.1:${listen.port}`, exporter.targets)
  } finally {
    child.kill('SIGKILL')
    await exporter.stop()
    await group.remove()
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * @param {string} name
 * @param {() => Promise<object | undefined>} run
 * @returns {Promise<any>} result of this run or of an earlier one
 */
async function kept (name, run) {
  const file = path.join(given.out, `${name}.json`)
  if (fs.existsSync(file)) return JSON.parse(fs.readFileSync(file, 'utf8'))
  const found = given.recorded ? undefined : await run()
  if (found) fs.writeFileSync(file, JSON.stringify(found))
  return found
}

/**
 * @template T
 * @param {(() => Promise<T>)[]} jobs
 * @returns {Promise<T[]>}
 */
async function inLanes (jobs) {
  /** @type {T[]} */
  const results = []
  const waiting = [...jobs]
  const lane = async () => {
    for (let job = waiting.shift(); job; job = waiting.shift()) results.push(await job())
  }
  await Promise.all(Array.from({ length: Number(given.lanes) }, lane))
  return results.filter(Boolean)
}

const wanted = (/** @type {(app: import('../lab').LabApp) => boolean} */ suits) => given.apps
  ? apps.filter(({ id }) => given.apps?.split(',').includes(id))
  : apps.filter(suits)

const trims = () =>
  inLanes(
    nodes.flatMap(({ node, major }) =>
      given.allocators.split(',').flatMap(allocator =>
        wanted(({ diagnosis }) => diagnosis === 'allocator-fragmentation').map(
          app => () =>
            kept(`trim-${major}-${allocator}-${app.id}`, async () => {
              const library = LIBRARIES[/** @type {keyof typeof LIBRARIES} */ (allocator)]
              const found = await watched(
                app,
                node,
                { MEMWATCH_ALLOCATOR_ACCESS: 'trim', ...(library && { LD_PRELOAD: library }) },
                async (url, targets) => {
                  const [target] = targets.filter(({ thread }) => thread === 'main')
                  const { take } = target
                  /**
                   * @type {import('../engine/history/tracks').Values} result of the last scan, with
                   *   which a trim begins
                   */
                  let look = {}
                  target.take = (frame, ...rest) => {
                    if (frame.values.residentBytes) look = frame.values
                    return take.call(target, frame, ...rest)
                  }
                  const response = await fetch(`${url}/api/v1/targets/${app.id}/trim`, {
                    method: 'POST'
                  })
                  const answer = /** @type {any} */ (await response.json())
                  if (!response.ok) {
                    return { node: major, allocator, app: app.id, refused: answer.error.message }
                  }
                  const { predicted, done } = answer
                  const { trimmableBytes, slackBytes, externalBytes, mallocBytes } = scanOf(
                    { ...look, allocatorBytes: undefined },
                    target.hello,
                    target.workers
                  )
                  return {
                    node: major,
                    allocator: target.hello.allocator,
                    app: app.id,
                    asked: predicted.bytes,
                    estimated: trimmableBytes,
                    slack: slackBytes,
                    external: externalBytes,
                    malloc: mallocBytes,
                    books: look.allocatorBytes,
                    resident: look.residentBytes,
                    gained: done.rssBeforeBytes - done.rssAfterBytes,
                    rss: done.rssBeforeBytes,
                    blockedSeconds: done.blockedSeconds
                  }
                }
              )
              console.log(JSON.stringify(found))
              return found
            })
        )
      )
    )
  )

const unexplained = () =>
  inLanes(
    nodes.flatMap(({ node, major }) =>
      wanted(() => true).map(
        app => () =>
          kept(`parts-${major}-${app.id}`, async () => {
            const found = await watched(app, node, {}, (_, targets) => {
              const target = targets.find(({ thread }) => thread === 'main')
              const window = target?.window()
              const anatomy = window && anatomyIn(window)
              if (!anatomy) return undefined
              const sum = Object.values(anatomy.parts).reduce((a, b) => a + b, 0)
              return {
                node: major,
                app: app.id,
                rss: anatomy.rssBytes,
                parts: anatomy.parts,
                unexplainedRatio: anatomy.parts.unexplained / anatomy.rssBytes,
                sumIsRss: Math.abs(sum - anatomy.rssBytes) < 1
              }
            })
            console.log(
              found
                ? `${major} ${app.id}: ${(100 * found.unexplainedRatio).toFixed(1)} % ` +
                  `unexplained, ${found.sumIsRss ? 'adds up' : 'DOES NOT ADD UP'}`
                : `${major} ${app.id}: ended before`
            )
            return found
          })
      )
    )
  )

async function costs () {
  const results = []
  for (const { node, major } of nodes) {
    for (const [buffersMb, heapMb] of SHAPES) {
      const found = await kept(`cost-${major}-${buffersMb}-${heapMb}`, async () => ({
        node: major,
        ...JSON.parse(
          execFileSync(
            node,
            ['--max-old-space-size=8000', COST_SCRIPT, String(buffersMb), String(heapMb)],
            { encoding: 'utf8' }
          )
        )
      }))
      if (!found) continue
      console.log(JSON.stringify(found))
      results.push(found)
    }
  }
  return results
}

async function main () {
  const found = {
    trims: parts.includes('trim') ? await trims() : [],
    unexplained: parts.includes('parts') ? await unexplained() : [],
    costs: parts.includes('cost') ? await costs() : []
  }
  const page = anatomyPage(found)
  console.log(page)
  if (given.write) fs.writeFileSync(path.join(__dirname, '../docs/anatomy.md'), page)
}

main()
