'use strict'

/**
 * `npm run bench:attack` plays an attacker for each row of SECURITY.md's table of rights. The
 * exporter runs with the flags of the image, in a cgroup with the memory and CPU of the chart.
 * Meanwhile the exporter watches a normal app, and probes send a request each second. The bench
 * needs Linux, and root for cgroups and for a network namespace of its own.
 */

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFileSync, spawn } = require('node:child_process')
const { once } = require('node:events')
const { parseArgs } = require('node:util')
const { NODE_VERSION } = require('../test/support/images')
const { toolsFolder } = require('../scripts/tools-folder')
const { attacks, TRUST } = require('./attack/attacks')
const { attackPage } = require('./attack-page')
const { saveReal } = require('./attack/by-data-dir')
const { NETWORK } = require('./attack/places')
const { inTime, startStage } = require('./attack/stage')

const PAGE = path.join(__dirname, '../docs/attack.md')
const SECURITY = path.join(__dirname, '../SECURITY.md')
/** Time limit of an attack. */
const LONGEST_MS = 30 * 60_000
/** Environment variable that is set while the bench runs in its own network namespace. */
const INSIDE = 'BENCH_ATTACK_INSIDE'

const HELP = `Usage: npm run bench:attack -- [options]

Attacks an exporter with the flags and limits of the chart. Exit status 1: a claim was violated.

  --only <WORDS>        runs the attacks whose name has these words; commas separate several
  --node <BINARY>       Node.js of the exporter (default: the image's ${NODE_VERSION}, from npm)
  --seconds <N>         duration of a continuous attack (default: 20)
  --messages <N>        number of hostile messages (default: 1000000)
  --seed <N>            seed of the hostile messages (default: 1)
  --write               writes docs/attack.md; with all attacks only
  --list                lists the attacks

Examples:
  $ npm run bench:attack -- --write
  $ npm run bench:attack -- --only 'sidecar unknown fields,node unknown fields' --seconds 10
  $ npm run bench:attack -- --only hostile --messages 50000 --node /usr/bin/node
`

/**
 * @typedef {object} Row of one attack
 * @property {import('./attack/attacks').Who} who
 * @property {string} what
 * @property {'sidecar' | 'node' | undefined} mode
 * @property {string} tried
 * @property {number} tookSeconds
 * @property {import('./attack/attacks').Claim[]} claims
 * @property {import('./attack/stage').Measured} [measured]
 * @property {import('./attack/by-exporter').Turn[]} [turns]
 * @property {string[]} broke violated claims; empty: all were met
 */

const { values: given } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    node: { type: 'string' },
    seconds: { type: 'string', default: '20' },
    messages: { type: 'string', default: '1000000' },
    seed: { type: 'string', default: '1' },
    write: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false }
  }
})

const startedMs = performance.now()
/** @param {string} text */
const say = text =>
  process.stderr.write(
    `${((performance.now() - startedMs) / 1000).toFixed(0).padStart(5)} s  ${text}\n`
  )

/** @param {import('./attack/attacks').Attack} attack */
const nameOf = ({ who, mode, what }) => [who, mode, what].filter(Boolean).join(' ')

/** @returns {import('./attack/attacks').Attack[]} */
function chooseAttacks () {
  const wanted = given.only
    .split(',')
    .map(words => words.trim().toLowerCase().split(/\s+/).filter(Boolean))
    .filter(words => words.length > 0)
  if (wanted.length === 0) return attacks
  const chosen = attacks.filter(attack =>
    wanted.some(words =>
      words.every(word => ` ${nameOf(attack).toLowerCase()}`.includes(` ${word}`))
    )
  )
  if (chosen.length === 0) throw new Error(`--only: no attack has ${given.only}; --list names them`)
  return chosen
}

/**
 * The rows of SECURITY.md's table, each of which has an attacker.
 * @returns {Record<string, string>} by attacker
 */
function readTrust () {
  const [, section] = fs.readFileSync(SECURITY, 'utf8').split(/^## Rights of each party$/m)
  const rows = section
    .split(/^## /m)[0]
    .split('\n')
    .filter(line => line.startsWith('| ') && !line.startsWith('| who |'))
    .map(line => line.split(' | ')[0].slice(2))
  const entries = Object.entries(TRUST).filter(([who]) => who !== 'nobody')
  const unplayed = rows.filter(row => !entries.some(([, words]) => words?.test(row)))
  if (unplayed.length > 0) throw new Error(`SECURITY.md: nobody attacks as: ${unplayed.join('; ')}`)
  return Object.fromEntries(
    entries.map(([who, words]) => {
      const row = rows.find(row => words?.test(row))
      if (!row) throw new Error(`SECURITY.md: no row has ${words}`)
      return [who, row]
    })
  )
}

/** Node.js of the image, from npm; installed once. @returns {string} binary */
function imageNode () {
  const folder = path.join(toolsFolder(), `node-${NODE_VERSION}`)
  const name = `node-linux-${process.arch}`
  const binary = path.join(folder, 'node_modules', name, 'bin/node')
  if (!fs.existsSync(binary)) {
    fs.mkdirSync(folder, { recursive: true })
    execFileSync(
      'npm',
      ['install', '--no-save', '--silent', '--prefix', folder, `${name}@${NODE_VERSION}`],
      { stdio: ['ignore', 'ignore', 'inherit'] }
    )
  }
  return binary
}

/**
 * Starts this program again in a new network namespace, whose loopback interface has more
 * addresses.
 * @param {string} node
 */
async function runInside (node) {
  const script = `ip link set lo up && ip address add ${NETWORK} dev lo && exec "$@"`
  const again = [process.execPath, __filename, ...process.argv.slice(2), '--node', node]
  const child = spawn(
    'unshare',
    ['--net', '--fork', '--kill-child', 'sh', '-c', script, 'sh', ...again],
    { stdio: 'inherit', env: { ...process.env, [INSIDE]: '1' } }
  )
  process.once('exit', () => child.kill('SIGKILL'))
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM'])) {
    process.once(signal, () => child.kill('SIGTERM'))
  }
  const [code] = await once(child, 'close')
  process.exitCode = code ?? 1
}

/**
 * Runs one attack, from the start of its exporter to its end.
 * @param {import('./attack/attacks').Attack} attack
 * @param {string} node
 * @param {() => Promise<import('./attack/by-data-dir').Saved>} saved
 * @returns {Promise<Row>}
 */
async function play ({ who, what, mode, hasToken, prepareData, run, runAlone }, node, saved) {
  const options = {
    seconds: Number(given.seconds),
    messages: Number(given.messages),
    seed: Number(given.seed),
    say
  }
  /** @type {Row} */
  const row = { who, what, mode, tried: '', tookSeconds: 0, claims: [], broke: [] }
  const began = performance.now()
  try {
    if (runAlone) {
      Object.assign(row, await inTime(runAlone(options), LONGEST_MS, 'the attack does not finish'))
    } else if (mode && run) {
      row.tried = prepareData ? what : ''
      const before = prepareData && (await saved())
      const stage = await startStage({
        mode,
        node,
        hasToken,
        prepareData: folder => {
          if (!before || !prepareData) return
          fs.cpSync(before.folder, folder, { recursive: true })
          prepareData(folder, before)
        }
      })
      try {
        const attackedMs = performance.now()
        const outcome = await inTime(
          run(stage, options),
          LONGEST_MS,
          'the attack does not finish'
        ).catch(error => ({
          claims: [{ text: 'the attack finishes', held: false, detail: error.message }]
        }))
        row.tookSeconds = (performance.now() - attackedMs) / 1000
        Object.assign(row, outcome)
        row.measured = await stage.measure()
        row.broke.push(...row.measured.broke)
      } finally {
        await stage.stop()
      }
    }
  } catch (error) {
    row.broke.push(/** @type {Error} */ (error).message)
  }
  row.tookSeconds ||= (performance.now() - began) / 1000
  row.broke.push(
    ...row.claims
      .filter(({ held }) => !held)
      .map(({ text, detail }) => `not so: ${text}${detail && ` (${detail.replace(/\s+/g, ' ')})`}`)
  )
  return row
}

/**
 * Files that an exporter saves, created on first use.
 * @param {string} node
 * @param {string} folder
 */
function savedOnce (node, folder) {
  /** @type {Promise<import('./attack/by-data-dir').Saved> | undefined} */
  let made
  return () => {
    made ??= (async () => {
      const stage = await startStage({ mode: 'sidecar', node })
      try {
        return await saveReal(stage, path.join(folder, 'data'))
      } finally {
        await stage.stop()
      }
    })()
    return made
  }
}

/** @param {Row} row */
function describe ({ measured, broke, tried }) {
  const figures = measured
    ? `RSS ${(measured.rssPeakBytes / 2 ** 20).toFixed(0)} MiB, longest probe ` +
      `${(measured.probes.longestMs / 1000).toFixed(2)} s, ${measured.goodLost} of ` +
        `${measured.goodFrames} frames lost; `
    : ''
  return [
    `${broke.length === 0 ? 'held' : 'BROKE'}: ${figures}${tried}`,
    ...broke.map(text => `        ${text}`)
  ].join('\n')
}

async function main () {
  if (given.help) return process.stdout.write(HELP)
  const chosen = chooseAttacks()
  if (given.list) return process.stdout.write(chosen.map(attack => nameOf(attack) + '\n').join(''))
  if (given.write && chosen !== attacks) {
    throw new Error('--write: only with all attacks, without --only')
  }
  const trust = readTrust()
  const node = given.node ?? imageNode()
  if (process.env[INSIDE] !== '1') return runInside(node)

  process.on('SIGTERM', () => process.exit(1))
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-attack-saved-'))
  const saved = savedOnce(node, folder)
  /** @type {Row[]} */
  const rows = []
  for (const attack of chosen) {
    say(nameOf(attack))
    const row = await play(attack, node, saved)
    say(describe(row))
    rows.push(row)
  }
  fs.rmSync(folder, { recursive: true, force: true })
  const version = execFileSync(node, ['-p', 'process.versions.node'], { encoding: 'utf8' }).trim()
  const page = attackPage(rows, { node: version, own: process.versions.node, trust })
  process.stdout.write(page)
  if (given.write) fs.writeFileSync(PAGE, page)
  const broken = rows.filter(({ broke }) => broke.length > 0)
  say(
    broken.length === 0
      ? `all ${rows.length} held`
      : `${broken.length} of ${rows.length} did not hold: ` +
        `${broken.map(({ mode, what }) => [mode, what].filter(Boolean).join(' ')).join(', ')}`
  )
  process.exitCode = broken.length === 0 ? 0 : 1
}

main().catch(error => {
  process.stderr.write(`bench:attack: ${error.message}\n`)
  process.exitCode = 2
})
