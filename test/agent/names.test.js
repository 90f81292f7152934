'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { NODES, AGENT, environment, startCollector, spawnBounded } = require('../support/agent-collector')
const { eventually } = require('../support/exporter')
const { memwatch } = require('../support/memwatch')

/** Sources of programs in a few lines each, which start or run the app like the real programs. */
const SPAWN = "const { spawn } = require('node:child_process');"
const LASTING = "setInterval(() => {}, 1000); console.log('up')"
const PROGRAMS = {
  nodemon: {
    file: 'nodemon/bin/nodemon.js',
    code: `${SPAWN} spawn('node', process.argv.slice(2), { stdio: 'inherit' })`
  },
  tsx: {
    file: 'tsx/dist/cli.mjs',
    code: `import { spawn } from 'node:child_process'
      spawn(process.execPath, ['--require', process.argv[1] + '/../../tsx/dist/preflight.cjs', ...process.argv.slice(2)],
        { stdio: 'inherit' })`,
    // The loader of tsx is a worker without a script, which reports before the main thread.
    more: {
      'tsx/dist/preflight.cjs': `const { Worker, isMainThread } = require('node:worker_threads')
        if (isMainThread) {
          new Worker('setInterval(() => {}, 1000)', { eval: true }).unref()
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500)
        }`
    }
  },
  nest: {
    file: '@nestjs/cli/bin/nest.js',
    code: `${SPAWN} spawn('node', ['--enable-source-maps', 'dist/main'], { stdio: 'inherit', shell: true })`
  },
  next: {
    file: 'next/dist/bin/next',
    code: `process.argv[2] === 'start' ? require('../server/lib/start-server.js')
      : require('node:child_process').fork(require.resolve('../server/lib/start-server.js'))`,
    more: { 'next/dist/server/lib/start-server.js': `process.title = 'next-server (v14)'; ${LASTING}` }
  },
  'ts-node': {
    file: 'ts-node/dist/bin.js',
    code: `process.argv = [process.argv[0], require('node:path').resolve(process.argv[2]), ...process.argv.slice(3)]
      require(process.argv[1])`
  }
}

let folder
let collector
/** @type {ReturnType<typeof spawnBounded>[]} */
const started = []
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-wrapped-'))
  const write = (file, text) => {
    fs.mkdirSync(path.dirname(path.join(folder, file)), { recursive: true })
    fs.writeFileSync(path.join(folder, file), text)
  }
  write('package.json', '{ "name": "shop" }')
  write('server.js', LASTING)
  write('dist/main.js', LASTING)
  write('.yarn/releases/yarn-4.1.0.cjs', PROGRAMS.nodemon.code)
  fs.mkdirSync(path.join(folder, 'node_modules/.bin'), { recursive: true })
  for (const [name, { file, code, more = {} }] of Object.entries(PROGRAMS)) {
    const own = file.split('/').slice(0, file.startsWith('@') ? 2 : 1).join('/')
    const bin = { [name]: `./${path.relative(own, file)}` }
    write(`node_modules/${own}/package.json`, JSON.stringify({ name: own, bin }))
    for (const [at, text] of Object.entries({ ...more, [file]: code })) write(`node_modules/${at}`, text)
    fs.symlinkSync(`../${file}`, path.join(folder, 'node_modules/.bin', name))
  }
})
afterAll(() => fs.rmSync(folder, { recursive: true }))
beforeEach(async () => { collector = await startCollector() })
afterEach(async () => {
  for (const { hello } of collector.connections) tryToKill(hello?.pid)
  for (const { child } of started) child.kill('SIGKILL')
  await Promise.all(started.splice(0).map(({ ended }) => ended))
  await collector.stop()
})

/** @param {number | undefined} pid */
function tryToKill (pid) {
  try {
    if (pid !== undefined) process.kill(pid, 'SIGKILL')
  } catch {} // The process has already ended.
}

/**
 * @param {string} node
 * @param {string[]} args
 */
function start (node, args) {
  const wrapper = spawnBounded(node, args, {
    cwd: folder,
    env: environment({
      PATH: `${path.dirname(node)}:${process.env.PATH}`,
      NODE_OPTIONS: `--require ${AGENT}`,
      MEMWATCH_SOCKET: collector.address,
      MEMWATCH_INTERVAL_SECONDS: '0.1'
    })
  })
  started.push(wrapper)
  return wrapper
}

describe.each(NODES)('the app has its own name on Node %s if started by', node => {
  it.each([
    ['nodemon', ['node_modules/.bin/nodemon', 'server.js']],
    ['nodemon by its own path', ['node_modules/nodemon/bin/nodemon.js', 'server.js']],
    ['tsx', ['node_modules/.bin/tsx', 'server.js']],
    ['nest start', ['node_modules/.bin/nest', 'start']],
    ['next dev', ['node_modules/.bin/next', 'dev']],
    ['next by its own path', ['node_modules/next/dist/bin/next']],
    ['next start', ['node_modules/.bin/next', 'start']],
    ['next start by its own path', ['node_modules/next/dist/bin/next', 'start']],
    ['ts-node', ['node_modules/.bin/ts-node', 'server.js']],
    ['yarn of a project', ['.yarn/releases/yarn-4.1.0.cjs', 'server.js']]
  ])('%s', async (_, args) => {
    const wrapper = start(node, args)
    // All threads have reported by the fifth frame of the app.
    await collector.until(connections =>
      connections.some(({ hello, frames }) => hello?.threadId === 0 && frames.length >= 5))
    expect(wrapper.child.exitCode).toBe(null)
    const hellos = collector.connections.flatMap(({ hello }) => hello ?? [])
    expect(hellos.filter(({ threadId }) => threadId === 0).length).toBe(1)
    expect([...new Set(hellos.map(({ name }) => name))]).toEqual(['shop'])
  })
})

;(process.platform === 'linux' ? it : it.skip)('memwatch doctor says which process starts the app', async () => {
  const { child } = start(NODES[0], ['node_modules/.bin/nodemon', 'server.js'])
  await collector.until(connections => connections.some(({ frames }) => frames.length >= 1))
  const { stdout } = await eventually(
    () => memwatch(['doctor', String(child.pid)]), ({ stdout }) => stdout !== ''
  )
  expect(stdout).toMatch(/✓ Process \d+ \(node nodemon\) only starts the app: the agent does not\s+run in it/)
})
