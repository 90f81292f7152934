'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { execFileSync, fork, spawn } = require('node:child_process')
const { once } = require('node:events')
const { setTimeout: sleep } = require('node:timers/promises')
const { fetchNode } = require('../../scripts/fetch-node')
const { toolsFolder } = require('../../scripts/tools-folder')
const { freePort } = require('../../test/support/free-port')
const { allRuns } = require('../realworld/cases')
const { install } = require('../realworld/install')

const START = path.join(__dirname, '../realworld/start.js')
const HOLDING_APP = path.join(__dirname, '../../test/support/holding-app.js')
const LARGE_APP = path.join(__dirname, 'large-app.js')
/** Number of orders for a snapshot of 550 MiB. */
const LARGE_ORDERS = '370000'
const TAKE = path.join(__dirname, 'take-snapshot.js')
const UNSEEN = path.join(__dirname, 'unseen')

/**
 * Folder of snapshots between runs, outside the repository: they are large and contain data of
 * processes.
 */
const snapshotFolder = () => path.join(toolsFolder(), 'retainers')

/**
 * Two snapshots of a published leak of bench/realworld/leaks/, taken while it leaks.
 * @param {string} name of the case
 * @param {{ seconds?: number }} [options] seconds until each snapshot
 * @returns {Promise<[string, string]>} paths; the snapshots are created only once
 * @throws {Error} if its packages cannot be installed, or it ends by itself
 */
async function snapshotsOfLeak (name, { seconds = 6 } = {}) {
  const file = (/** @type {number} */ n) => path.join(snapshotFolder(), `${name}-${n}.heapsnapshot`)
  /** @type {[string, string]} */
  const files = [file(1), file(2)]
  if (files.every(file => fs.existsSync(file))) return files
  const run = allRuns().find(({ case: of, form }) => of === name && form === 'leaky')
  if (!run) throw new Error(`no leak called ${name}`)
  fs.mkdirSync(snapshotFolder(), { recursive: true })
  const folder = await install(`${name}-leaky`, run.packages)
  fs.copyFileSync(run.file, path.join(folder, 'case.js'))
  fs.copyFileSync(START, path.join(folder, 'start.js'))
  const env = { ...process.env, ...run.env, NODE_OPTIONS: '', PORT: String(await freePort()) }
  const traffic = 'traffic' in run.of
    ? spawn(process.execPath, ['start.js', 'traffic'], { cwd: folder, env, stdio: 'ignore' })
    : undefined
  const app = fork(path.join(folder, 'start.js'), ['app'], {
    cwd: folder,
    env,
    execPath: fetchNode(run.node),
    execArgv: ['-r', TAKE],
    stdio: ['ignore', 'ignore', 'ignore', 'ipc']
  })
  try {
    for (const file of files) {
      await sleep(seconds * 1000)
      app.send(`${file}.part`)
      const [answer] = await Promise.race([once(app, 'message'), once(app, 'exit')])
      if (answer !== `${file}.part`) throw new Error(`${name} ended by itself: ${answer}`)
      fs.renameSync(`${file}.part`, file)
    }
  } finally {
    app.kill('SIGKILL')
    traffic?.kill('SIGKILL')
  }
  return files
}

/**
 * @param {string} way of test/support/holding-app.js
 * @param {string} binary of Node.js
 * @param {string} version
 * @returns {string} path of a snapshot, made once
 */
function snapshotOfWay (way, binary, version) {
  const file = path.join(snapshotFolder(), `${way} ${version}.heapsnapshot`)
  return makeOnce(file, part => [binary, HOLDING_APP, way, part])
}

/**
 * Two snapshots of an app of unseen/, which leaks between them.
 * @param {Pick<import('./cases').Case, 'name' | 'packages'>} of
 * @param {string} binary of Node.js
 * @param {string} version
 * @returns {[string, string]} paths, made once
 */
function snapshotsOfUnseen ({ name, packages = {} }, binary, version) {
  const fileOf = (/** @type {number} */ n) =>
    path.join(snapshotFolder(), `unseen ${name} ${version}-${n}.heapsnapshot`)
  /** @type {[string, string]} */
  const files = [fileOf(1), fileOf(2)]
  if (files.every(file => fs.existsSync(file))) return files
  const folder = path.join(snapshotFolder(), 'unseen', name)
  fs.mkdirSync(folder, { recursive: true })
  fs.writeFileSync(path.join(folder, 'package.json'), '{ "name": "unseen" }\n')
  for (const file of fs.readdirSync(UNSEEN)) {
    if (/\.m?js$/.test(file)) fs.copyFileSync(path.join(UNSEEN, file), path.join(folder, file))
  }
  for (const [owner, place] of Object.entries(packages)) {
    const installed = path.join(folder, 'node_modules', place)
    fs.cpSync(path.join(UNSEEN, 'packages', owner), installed, { recursive: true })
    const link = path.join(folder, 'node_modules', owner)
    if (place.startsWith('.pnpm/') && !fs.existsSync(link)) fs.symlinkSync(installed, link)
  }
  const app = fs.readdirSync(folder).find(file => path.parse(file).name === name)
  execFileSync(binary, [String(app), ...files], {
    cwd: folder, stdio: 'ignore', env: { ...process.env, NODE_OPTIONS: '' }
  })
  return files
}

/** @returns {string} path of a snapshot of 550 MiB, made once */
const largeSnapshot = () =>
  makeOnce(path.join(snapshotFolder(), 'large.heapsnapshot'), part =>
    [process.execPath, '--max-old-space-size=3000', LARGE_APP, part, LARGE_ORDERS])

/**
 * @param {string} file
 * @param {(part: string) => string[]} commandOf
 */
function makeOnce (file, commandOf) {
  if (fs.existsSync(file)) return file
  fs.mkdirSync(snapshotFolder(), { recursive: true })
  const [command, ...args] = commandOf(`${file}.part`)
  execFileSync(command, args, { stdio: 'ignore', env: { ...process.env, NODE_OPTIONS: '' } })
  fs.renameSync(`${file}.part`, file)
  return file
}

module.exports = { snapshotsOfLeak, snapshotOfWay, snapshotsOfUnseen, largeSnapshot }
