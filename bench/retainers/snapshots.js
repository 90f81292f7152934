'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { fork, spawn } = require('node:child_process')
const { once } = require('node:events')
const { setTimeout: sleep } = require('node:timers/promises')
const { fetchNode } = require('../../scripts/fetch-node')
const { toolsFolder } = require('../../scripts/tools-folder')
const { freePort } = require('../../test/support/free-port')
const { allRuns } = require('../realworld/cases')
const { install } = require('../realworld/install')

const START = path.join(__dirname, '../realworld/start.js')
const TAKE = path.join(__dirname, 'take-snapshot.js')

/** Folder of snapshots between runs: they are large, and hold what a process held. */
const snapshotFolder = () => path.join(toolsFolder(), 'retainers')

/**
 * Two snapshots of a published leak of bench/realworld/leaks/, taken while it leaks.
 * @param {string} name of the case
 * @param {{ seconds?: number }} [options] until each of the two
 * @returns {Promise<[string, string]>} paths; made once
 * @throws {Error} where its packages cannot be installed, or it ends by itself
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

module.exports = { snapshotsOfLeak, snapshotFolder }
