'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { eventually } = require('../support/exporter')

const START = path.join(__dirname, '../../deploy/image/start.sh')
/** Program in place of Node.js: prints its user and arguments, and stays. */
const NODE = `#!/bin/sh
echo "$$ $*" >> "$STARTS"
exec sleep 1000
`

/** @type {string} */
let folder
beforeEach(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-start-'))
  fs.writeFileSync(path.join(folder, 'node'), NODE, { mode: 0o755 })
  fs.copyFileSync(START, path.join(folder, 'start.sh'))
})
afterEach(() => fs.rmSync(folder, { recursive: true }))

/**
 * @param {string[]} args
 * @param {NodeJS.ProcessEnv} env
 */
function start (args, env) {
  const child = spawn(path.join(folder, 'start.sh'), args, {
    env: { PATH: `${folder}:${process.env.PATH}`, STARTS: path.join(folder, 'starts'), ...env },
    stdio: 'ignore'
  })
  const ended = once(child, 'exit')
  /** Options of Node.js at each start so far. */
  const starts = () =>
    fs.existsSync(path.join(folder, 'starts'))
      ? fs.readFileSync(path.join(folder, 'starts'), 'utf8').trim().split('\n')
      : []
  const startedTimes = count =>
    eventually(starts, found => found.length === count && found[0] !== '').then(found =>
      found.map(line => Number(line.split(' ')[0]))
    )
  return { child, ended, starts, startedTimes }
}

const isThere = pid => fs.existsSync(`/proc/${pid}`)

it('an exporter is restarted after every kill, and its container keeps running', async () => {
  const { child, ended, starts, startedTimes } = start(['exporter'], {
    MEMWATCH_ON_FAILURE: 'stay'
  })
  for (let count = 1; count <= 2; count++) {
    process.kill((await startedTimes(count))[count - 1], 'SIGKILL')
  }
  const pids = await startedTimes(3)
  expect([child.exitCode, child.signalCode]).toEqual([null, null])
  expect(starts()[2]).toMatch(
    /^\d+ --max-old-space-size-percentage=50 --max-semi-space-size=1 --optimize-for-size \S*\/cli\/memwatch\.js exporter$/
  )
  child.kill('SIGTERM')
  expect(await ended).toEqual([0, null])
  expect(pids.filter(isThere)).toEqual([])
})

it('an exporter for all pods of a node has a new space that can grow', async () => {
  const { child, ended, starts, startedTimes } = start(['exporter'], { MEMWATCH_SOCKET_DIR: '/x' })
  await startedTimes(1)
  expect(starts()[0]).toMatch(/^\d+ --max-old-space-size-percentage=50 \S*memwatch\.js exporter$/)
  child.kill('SIGKILL')
  await ended
})

it('the start script ends at once on SIGTERM, also while it waits to start the exporter', async () => {
  const { child, ended, startedTimes } = start(['exporter'], { MEMWATCH_ON_FAILURE: 'stay' })
  const [pid] = await startedTimes(1)
  process.kill(pid, 'SIGKILL')
  await eventually(() => isThere(pid), there => !there)
  child.kill('SIGTERM')
  expect(await ended).toEqual([0, null])
})

it.each([
  [['install-agent', '/run/memwatch'], 'stay'],
  [['exporter'], undefined]
])('%j with MEMWATCH_ON_FAILURE=%s is the process of the container', async (args, onFailure) => {
  const { child, ended, startedTimes } = start(
    args,
    onFailure ? { MEMWATCH_ON_FAILURE: onFailure } : {}
  )
  expect(await startedTimes(1)).toEqual([child.pid])
  child.kill('SIGKILL')
  await ended
})
