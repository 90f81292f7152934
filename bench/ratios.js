'use strict'

/**
 * `npm run bench:ratios` compares the cost of the permanent code paths (bench/hot-paths.js) with
 * that of an earlier commit. This is the commit whose cost was last accepted, the last one that
 * changed bench/accepted-cost.json. Both commits run in turns, in one run, so a slow or busy
 * machine affects both. `--check`, a part of `npm test`, fails if a path costs a fifth more.
 * `--accept 'why'` writes the file, and later runs compare with the commit that contains it. Both
 * sides use the current libraries, so a slower library shows only in bench:exporter.
 *
 * It ends with 1 if a path costs more, and with 4 if there is no commit to compare with, as in a
 * clone without history.
 */

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFileSync } = require('node:child_process')
const { parseOptions } = require('./options')

const ROOT = path.join(__dirname, '..')
const MODULES = path.join(ROOT, 'node_modules')
const ACCEPTED = 'bench/accepted-cost.json'
const RECORDING = path.join(ROOT, 'test/recordings/20-semi-space-starvation-broken.ndjson.gz')
const ROUNDS = 50
const LEAST_TURNS = 5
const MOST_TURNS = 10
const WORSE = 1.2
const CANNOT_RUN = 4

const given = parseOptions(__filename, {
  check: { type: 'boolean', default: false },
  accept: { type: 'string' },
  measure: { type: 'string' }
})

/**
 * @param {string[]} args
 * @returns {Buffer}
 */
const git = (...args) =>
  execFileSync('git', args, { cwd: ROOT, maxBuffer: 2 ** 30, stdio: ['ignore', 'pipe', 'pipe'] })

/** The commit to compare with; undefined if there is none. @returns {string | undefined} */
function acceptedCommit () {
  try {
    if (git('rev-parse', '--is-shallow-repository').toString().trim() === 'true') return undefined
    return git('log', '-1', '--format=%H', '--', ACCEPTED).toString().trim() || undefined
  } catch {
    return undefined // This is not a repository.
  }
}

/**
 * Checks out the tree of a commit, with the libraries of the present tree.
 * @param {string} commit
 * @param {string} folder
 */
function checkOut (commit, folder) {
  execFileSync('tar', ['-x', '-C', folder], {
    input: git('archive', commit),
    stdio: ['pipe', 'ignore', 'inherit']
  })
  const link = (/** @type {string} */ name, /** @type {string} */ to) => {
    const at = path.join(folder, 'node_modules', name)
    fs.mkdirSync(path.dirname(at), { recursive: true })
    fs.symlinkSync(to, at)
  }
  for (const name of installedNames()) {
    const real = fs.realpathSync(path.join(MODULES, name))
    if (path.relative(fs.realpathSync(ROOT), real).startsWith('node_modules')) link(name, real)
  }
  // Packages of an older tree may have other names.
  const manifestOf = (/** @type {string} */ at) =>
    JSON.parse(fs.readFileSync(path.join(folder, at, 'package.json'), 'utf8'))
  for (const at of manifestOf('.').workspaces) link(manifestOf(at).name, path.join(folder, at))
}

/** @returns {string[]} names of the packages in node_modules, including @scope/name */
const installedNames = () =>
  fs.readdirSync(MODULES).flatMap(name =>
    name.startsWith('@')
      ? fs.readdirSync(path.join(MODULES, name)).map(inScope => `${name}/${inScope}`)
      : name)

/**
 * Each side runs in a process of its own, so that they do not share heap or compiled code.
 * @param {string} tree
 * @returns {Record<string, number>} fastest round of each path, in ms
 */
function quickestOf (tree) {
  return JSON.parse(
    execFileSync(process.execPath, [__filename, '--measure', tree], {
      stdio: ['ignore', 'pipe', 'inherit']
    }).toString()
  )
}

/** @param {string} tree */
async function measureTree (tree) {
  const { work, stop } = await require(path.join(tree, 'bench/hot-paths.js')).hotPaths(RECORDING)
  /** @type {Record<string, number>} */
  const quickest = {}
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, run] of Object.entries(work)) {
      const began = performance.now()
      await /** @type {() => unknown} */ (run)()
      quickest[name] = Math.min(quickest[name] ?? Infinity, performance.now() - began)
    }
  }
  stop()
  console.log(JSON.stringify(quickest))
}

/**
 * Runs both sides in turns, until no path looks expensive merely because of a disturbance.
 * @param {string} folder with the tree to compare with
 * @returns {Record<string, number>} ratios
 */
function compare (folder) {
  /** @type {Record<string, number>[]} */
  const best = [{}, {}]
  /** @type {Record<string, number>} */
  let ratios = {}
  for (let turn = 0; turn < MOST_TURNS; turn++) {
    for (const [i, tree] of [ROOT, folder].entries()) {
      for (const [name, ms] of Object.entries(quickestOf(tree))) {
        best[i][name] = Math.min(best[i][name] ?? Infinity, ms)
      }
    }
    // A path that was added since has no earlier cost.
    ratios = Object.fromEntries(
      Object.keys(best[0])
        .filter(name => name in best[1])
        .map(name => [name, best[0][name] / best[1][name]])
    )
    if (turn + 1 >= LEAST_TURNS && Object.values(ratios).every(value => value <= WORSE)) break
  }
  return ratios
}

function main () {
  const commit = acceptedCommit()
  if (!commit && given.accept === undefined) {
    console.log(
      `no commit that wrote ${ACCEPTED}: a clone without history has nothing to compare with`
    )
    return CANNOT_RUN
  }
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-ratios-'))
  /** @type {Record<string, number>} */
  let ratios = {}
  try {
    if (commit) {
      checkOut(commit, folder)
      ratios = compare(folder)
    }
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
  const percent = Object.fromEntries(
    Object.entries(ratios).map(([name, value]) => [name, Math.round(100 * (value - 1))])
  )
  for (const [name, more] of Object.entries(percent)) {
    console.log(`${name}: ${more > 0 ? '+' : ''}${more} % against ${commit?.slice(0, 7)}`)
  }
  if (given.accept !== undefined) {
    const file = path.join(ROOT, ACCEPTED)
    const before = fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, 'utf8')) : []
    before.push({ date: new Date().toISOString().slice(0, 10), why: given.accept, percent })
    fs.writeFileSync(file, JSON.stringify(before, null, 2) + '\n')
  }
  const worse = given.check ? Object.keys(ratios).filter(name => ratios[name] > WORSE) : []
  for (const name of worse) {
    console.log(
      `${name} costs more than a fifth more than it did: make it cheaper, or run npm run ` +
        'bench:ratios -- --accept \'why\''
    )
  }
  return worse.length > 0 ? 1 : 0
}

if (given.measure !== undefined) measureTree(given.measure).then(() => process.exit())
else process.exitCode = main()
