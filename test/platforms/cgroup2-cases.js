'use strict'

/** Cases inside the virtual machine, which contains only the product. */

const assert = require('node:assert')
const fs = require('node:fs')
const path = require('node:path')
const { spawnSync } = require('node:child_process')
const { createMemoryGroup } = require('../../exporter/process/memory-group')
const { read, report, simulate, tellFacts } = require('./tried')

const ROOT = path.join(__dirname, '../..')
const MIB = 2 ** 20
/**
 * Deaths of bench/deaths.js that involve a container. A process that allocates all memory in one
 * turn of its loop sends no frame, so a sidecar could only guess.
 */
const DEATHS = [
  'heap larger than its container', 'memory full', 'heap full in a container',
  'SIGKILL in a container', 'exit 0 in a container'
]
/** An app that grows by 5 MiB a second, up to 260 MiB. */
const GROWING = `
const kept = []
setInterval(() => { if (kept.length < 260) kept.push(Buffer.alloc(2 ** 20, 1)) }, 200)
`

/** @param {number} major */
const nodeOf = major => `/opt/${major}/node`
/** The command line runs on the newest Node.js. @type {import('./rooms').Place} */
const COMMAND_LINE = { node: nodeOf(24), root: ROOT, wrap: words => words }

/**
 * @template T
 * @param {{ limitMib: number, highMib: number }} limits
 * @param {(wrap: (words: string[]) => string[]) => Promise<T>} work
 */
async function inGroup ({ limitMib, highMib }, work) {
  const group = createMemoryGroup({ limitBytes: limitMib * MIB, name: 'platform' })
  assert.ok(group.path, group.reason)
  fs.writeFileSync(path.join(group.path, 'memory.high'), String(highMib * MIB))
  try {
    return await work(([file, ...args]) => {
      const { command, args: rest } = group.wrap(file, args)
      return [command, ...rest]
    })
  } finally {
    await group.remove()
  }
}

/**
 * @param {number} major of the app's Node.js
 * @param {string} app of the lab
 * @param {string} [found] id of the diagnosis
 */
async function simulateOn (major, app, found) {
  await simulate(COMMAND_LINE, app, found, ['--node', nodeOf(major)])
}

/**
 * @typedef {object} GuestCase
 * @property {string} title
 * @property {18 | 24} major of the app's Node.js
 * @property {() => Promise<string[] | void>} test
 * @type {GuestCase[]}
 */
const CASES = /** @type {const} */ ([18, 24]).flatMap(major => [
  {
    title: 'the agent alone reports limit, memory.high, pressure, limit hits and kills of its ' +
      'container',
    major,
    test: () => inGroup({ limitMib: 512, highMib: 400 }, async wrap => {
      const { hello, values, known } =
        await tellFacts({ ...COMMAND_LINE, node: nodeOf(major), wrap })
      assert.strictEqual(values.containerLimitBytes, 512 * MIB)
      assert.strictEqual(values.containerHighBytes, 400 * MIB)
      // Node.js 18 reads only cgroup version 1, and reports no limit here.
      assert.strictEqual(hello.constrainedBytes, major === 18 ? undefined : 400 * MIB)
      assert.ok(values.memoryPressureSomeSeconds >= 0 && values.cpuPressureSomeSeconds >= 0)
      return known
    })
  },
  {
    title: 'container-limit-mismatch: found',
    major,
    test: () => simulateOn(major, 'container-limit-mismatch', 'container-limit-mismatch')
  },
  {
    title: 'deaths: an exporter on the machine and a sidecar report oom_kill only for kills by ' +
      'the kernel, and the right cause of other deaths',
    major,
    async test () {
      const { status, stdout, stderr } = spawnSync(process.execPath, [
        path.join(ROOT, 'bench/deaths.js'), '--nodes', nodeOf(major), '--lanes', '1',
        '--deaths', DEATHS.join(',')
      ], { encoding: 'utf8' })
      assert.strictEqual(status, 0, stdout + stderr)
    }
  },
  ...(major === 18
    ? []
    : [
        {
          title: 'container-limit-mismatch-group: found with the limit on the parent cgroup',
          major,
          test: () =>
            simulateOn(major, 'container-limit-mismatch-group', 'container-limit-mismatch')
        },
        {
          title: 'memory.high: the throttling is found before any kill',
          major,
          test: () => inGroup({ limitMib: 512, highMib: 160 }, async wrap => {
            const [file, ...args] = wrap([nodeOf(major), '-e', GROWING])
            const told = read(
              await report(COMMAND_LINE, ['run', '--for', '60', '--', file, ...args])
            )
            // The app also grows like a leak.
            assert.strictEqual(told.states['container-limit-mismatch'], 'confirmed', told.headline)
            assert.match(
              told.summaries['container-limit-mismatch'],
              /memory\.high of 160 MiB makes the process wait/
            )
          })
        },
        {
          title: 'healthy-full-container: no memory problem is confirmed',
          major,
          test: () => simulateOn(major, 'healthy-full-container')
        }
      ])
])

module.exports = { CASES }
