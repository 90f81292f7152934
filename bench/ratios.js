'use strict'

/**
 * `npm run bench:ratios`: what the paths that run all the time (bench/hot-paths.js) cost, against the same paths of the commit whose cost
 * was last accepted: that which last wrote bench/accepted-cost.json. Both run in turns, in this process: a machine that is slow, or
 * disturbed, is so for both. `--check` (a part of `npm test`) fails where one costs more than a fifth more; `--accept 'why'` writes the
 * file, and the commit that carries it is compared with from then on. Libraries are today's for both: a slower one shows in
 * bench:exporter.
 *
 * Ends with 1 when something costs more, 4 when there is nothing to compare with, as in a clone without history.
 */

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFileSync } = require('node:child_process')
const { parseArgs } = require('node:util')

const ROOT = path.join(__dirname, '..')
const ACCEPTED = 'bench/accepted-cost.json'
const RECORDING = path.join(ROOT, 'test/recordings/20-semi-space-starvation-broken.ndjson.gz')
const ROUNDS = 15
const ATTEMPTS = 6
const WORSE = 1.2
const CANNOT_RUN = 4

const { values: given } = parseArgs({ options: { check: { type: 'boolean', default: false }, accept: { type: 'string' } } })

/** @param {string[]} args @returns {Buffer} */
const git = (...args) => execFileSync('git', args, { cwd: ROOT, maxBuffer: 2 ** 30, stdio: ['ignore', 'pipe', 'pipe'] })

/** The commit to compare with; undefined where there is none. @returns {string | undefined} */
function acceptedCommit () {
  try {
    if (git('rev-parse', '--is-shallow-repository').toString().trim() === 'true') return undefined
    return git('log', '-1', '--format=%H', '--', ACCEPTED).toString().trim() || undefined
  } catch {
    return undefined // no repository
  }
}

/**
 * The tree of a commit, with this one's libraries.
 * @param {string} commit @param {string} folder
 */
function checkOut (commit, folder) {
  execFileSync('tar', ['-x', '-C', folder], { input: git('archive', commit), stdio: ['pipe', 'ignore', 'inherit'] })
  const modules = path.join(ROOT, 'node_modules')
  fs.mkdirSync(path.join(folder, 'node_modules'))
  for (const name of fs.readdirSync(modules)) {
    const real = fs.realpathSync(path.join(modules, name))
    const inTree = path.relative(fs.realpathSync(ROOT), real)
    const isOurs = !inTree.startsWith('..') && !inTree.startsWith('node_modules')
    fs.symlinkSync(isOurs ? path.join(folder, inTree) : real, path.join(folder, 'node_modules', name))
  }
}

/**
 * The quickest of many rounds, which take turns: what disturbs, disturbs both.
 * @param {() => unknown} now @param {() => unknown} then @returns {Promise<number>} ratio
 */
async function ratio (now, then) {
  const quickest = [Infinity, Infinity]
  for (let round = 0; round < ROUNDS; round++) {
    for (const [i, run] of [now, then].entries()) {
      const began = performance.now()
      await run()
      quickest[i] = Math.min(quickest[i], performance.now() - began)
    }
  }
  return quickest[0] / quickest[1]
}

/** @param {string} tree */
const pathsOf = tree => require(path.join(tree, 'bench/hot-paths.js')).hotPaths(RECORDING)

/** @param {string} folder with the tree to compare with @returns {Promise<Record<string, number>>} ratios */
async function measure (folder) {
  const now = await pathsOf(ROOT)
  const then = await pathsOf(folder)
  /** @type {Record<string, number>} */
  const ratios = {}
  for (const [name, work] of Object.entries(now.work)) {
    if (!then.work[name]) continue // new since
    for (let attempt = 0; attempt < ATTEMPTS && !(ratios[name] <= WORSE); attempt++) {
      ratios[name] = Math.min(ratios[name] ?? Infinity, await ratio(/** @type {() => unknown} */ (work), then.work[name]))
    }
  }
  now.stop()
  then.stop()
  return ratios
}

async function main () {
  const commit = acceptedCommit()
  if (!commit && given.accept === undefined) {
    console.log(`no commit that wrote ${ACCEPTED}: a clone without history has nothing to compare with`)
    return CANNOT_RUN
  }
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-ratios-'))
  /** @type {Record<string, number>} */
  let ratios = {}
  try {
    if (commit) {
      checkOut(commit, folder)
      ratios = await measure(folder)
    }
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
  const percent = Object.fromEntries(Object.entries(ratios).map(([name, value]) => [name, Math.round(100 * (value - 1))]))
  for (const [name, more] of Object.entries(percent)) console.log(`${name}: ${more > 0 ? '+' : ''}${more} % against ${commit?.slice(0, 7)}`)
  if (given.accept !== undefined) {
    const file = path.join(ROOT, ACCEPTED)
    const before = fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, 'utf8')) : []
    before.push({ date: new Date().toISOString().slice(0, 10), why: given.accept, percent })
    fs.writeFileSync(file, JSON.stringify(before, null, 2) + '\n')
  }
  const worse = given.check ? Object.keys(ratios).filter(name => ratios[name] > WORSE) : []
  for (const name of worse) console.log(`${name} costs more than a fifth more than it did: make it cheaper, or run npm run bench:ratios -- --accept 'why'`)
  return worse.length > 0 ? 1 : 0
}

main().then(code => process.exit(code), error => {
  console.error(error)
  process.exit(1)
})
