'use strict'

/**
 * `npm run test:platforms` tests memwatch on platforms of its users other than this machine. It
 * fetches the parts of each platform once into the tools folder, and installs missing packages of
 * the machine's distribution. It changes nothing else. With --write it stores the results, from
 * which the tables of docs/compatibility.md are generated.
 */

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { parseArgs } = require('node:util')
const { writeSeen } = require('../../scripts/compatibility')

/**
 * @typedef {object} Case
 * @property {string} title sentence about the platform
 * @property {string} node version of Node.js
 * @property {() => Promise<string[] | void>} test resolves to the names of SOURCES with values on
 *   the platform, if the case checks them
 *
 * @typedef {object} Platform
 * @property {string} title
 * @property {() => string | undefined} missing reason why the platform cannot be tested on this
 *   machine
 * @property {string[]} nodes versions of Node.js
 * @property {(folder: string) => Case[] | Promise<Case[]>} cases cases, run in the given empty
 *   folder; fetches the parts of the platform
 * @property {number} [lanes] number of simultaneous cases
 */

/** @type {Record<string, () => Platform>} */
const PLATFORMS = {
  glibc: () => require('./glibc').glibc,
  musl: () => require('./musl').musl,
  'no-proc': () => require('./no-proc').noProc,
  'read-only': () => require('./read-only').readOnlyRoot,
  'no-home': () => require('./no-home').noHome,
  cgroup2: () => require('./cgroup2').cgroup2,
  arm64: () => require('./arm64').arm64
}
const NAMES = Object.keys(PLATFORMS).join(',')
/** Two apps of the lab fit on two cores. */
const LANES = 2

const HELP = `npm run test:platforms -- [--only NAMES] [--case TEXT] [--write]

memwatch on other platforms, for real. Each says SKIPPED and why where it cannot be tried.
  --only NAMES  some of ${NAMES}
  --case TEXT   cases whose sentence has that
  --write       what passed becomes the tables of docs/compatibility.md, by npm run generate
Ends with 0 where all that ran passed, 1 where something failed, 2 for wrong arguments.
Examples:
  $ npm run test:platforms
  $ npm run test:platforms -- --only musl,no-proc
  $ npm run test:platforms -- --only cgroup2 --write`

/**
 * @typedef {{ known: string[], verified: { title: string, nodes: string[] }[], failed: number,
 *   passed: number }} Result known: names of SOURCES on all versions of Node.js
 */

/**
 * @param {Platform} platform
 * @param {string} [text] text in the titles of the cases to run
 * @returns {Promise<Result>}
 */
async function tryPlatform (platform, text = '') {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-platform-'))
  const remove = () => fs.rmSync(folder, { recursive: true, force: true })
  process.once('exit', remove)
  /** @type {string[][]} */
  const known = []
  /** @type {Map<string, string[]>} */
  const verified = new Map()
  const counts = { passed: 0, failed: 0 }
  try {
    const waiting = (await platform.cases(folder)).filter(({ title }) => title.includes(text))
    for (const { title } of waiting) verified.set(title, [])
    await Promise.all(Array.from({ length: platform.lanes ?? LANES }, async () => {
      for (let one = waiting.shift(); one; one = waiting.shift()) {
        const { title, node, test } = one
        const began = Date.now()
        const sentence = `Node.js ${node}: ${title}`
        try {
          const found = await test()
          if (found) known.push(found)
          verified.get(title)?.push(node)
          counts.passed++
          console.log(`  passed (${Math.round((Date.now() - began) / 1000)} s): ${sentence}`)
        } catch (error) {
          counts.failed++
          console.log(`  FAILED: ${sentence}\n${/** @type {Error} */ (error).stack}`)
        }
      }
    }))
  } finally {
    remove()
    process.removeListener('exit', remove)
  }
  return {
    ...counts,
    known: (known[0] ?? []).filter(name => known.every(names => names.includes(name))),
    verified: [...verified].map(([title, nodes]) => ({ title, nodes: nodes.sort() }))
  }
}

/** @returns {{ only: string[], text?: string, write: boolean }} */
function readArguments () {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', default: NAMES },
      case: { type: 'string' },
      write: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false }
    }
  })
  if (values.help) {
    console.log(HELP)
    process.exit(0)
  }
  const only = values.only.split(',')
  const wrong = only.find(name => !Object.hasOwn(PLATFORMS, name))
  if (wrong !== undefined) throw new Error(`--only: no platform ${wrong}; there are ${NAMES}`)
  if (values.write && values.case !== undefined) throw new Error('--write: needs all cases')
  return { only, text: values.case, write: values.write }
}

async function main () {
  // Running programs end with this process, because each part listens to its exit event.
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
    process.once(signal, () => process.exit(1))
  }
  const { only, text, write } = readArguments()
  const totals = { passed: 0, failed: 0, skipped: 0 }
  for (const name of only) {
    const platform = PLATFORMS[name]()
    const missing = platform.missing()
    if (missing !== undefined) {
      totals.skipped++
      console.log(`SKIPPED: ${name}: ${missing}`)
      continue
    }
    console.log(`== ${name}: ${platform.title}`)
    try {
      const result = await tryPlatform(platform, text)
      totals.passed += result.passed
      totals.failed += result.failed
      if (write && result.failed === 0) {
        const { title, nodes } = platform
        const { known, verified } = result
        writeSeen(Object.keys(PLATFORMS), name, { title, nodes, known, verified })
        console.log('  written: test/platforms/seen.json; npm run generate makes the page of it')
      }
    } catch (error) {
      totals.failed++
      console.log(`FAILED: ${name}: ${/** @type {Error} */ (error).stack}`)
    }
  }
  console.log(`\n${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped`)
  process.exitCode = totals.failed === 0 ? 0 : 1
}

main().catch(error => {
  console.error(`test:platforms: ${error.message}`)
  process.exitCode = 2
})
