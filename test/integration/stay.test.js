'use strict'

const fs = require('node:fs')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { once } = require('node:events')
const { spawn } = require('node:child_process')
const { environment } = require('../support/agent-collector')
const { eventually } = require('../support/exporter')
const { freePort } = require('../support/free-port')
const { memwatch, MEMWATCH } = require('../support/memwatch')

/**
 * @param {NodeJS.ProcessEnv} env
 * @param {string[]} [args]
 */
function start (env, args = []) {
  const child = spawn(process.execPath, [MEMWATCH, 'exporter', ...args], {
    env: environment(env),
    stdio: ['ignore', 'ignore', 'pipe']
  })
  let said = ''
  child.stderr.on('data', chunk => { said += chunk })
  const ended = once(child, 'close')
  return { child, ended, said: () => said }
}

it.each([
  ['a value is wrong', { MEMWATCH_DATA_MAX: 'much' }, 'MEMWATCH_DATA_MAX: expected an amount of memory'],
  ['an option is misspelt', { MEMWATCH_DATA_DIRR: '/x' }, 'did you mean MEMWATCH_DATA_DIR?'],
  [
    'it cannot listen for agents',
    { MEMWATCH_SOCKET: '/proc/none/exporter.sock' },
    'cannot listen: '
  ]
])(
  'if %s, an exporter with --on-failure stay is alive to probes and down to Prometheus',
  async (_, wrong, message) => {
    const port = await freePort()
    const { child, ended, said } = start({
      MEMWATCH_ON_FAILURE: 'stay',
      MEMWATCH_LISTEN: `127.0.0.1:${port}`,
      ...wrong
    })
    try {
      const get = path =>
        fetch(`http://127.0.0.1:${port}${path}`).then(
          async response => [response.status, await response.text()],
          () => undefined
        )
      expect(await eventually(() => get('/-/healthy'), Boolean)).toEqual([
        200,
        expect.stringContaining(message)
      ])
      for (const path of ['/metrics', '/-/ready', '/api/v1/targets']) {
        expect(await get(path)).toEqual([503, expect.stringContaining(message)])
      }
      expect(said()).toContain(message)
      expect(child.exitCode).toBeNull()
    } finally {
      child.kill('SIGTERM')
      expect((await ended)[0]).toBe(0)
    }
  }
)

it('also stays if its address is in use or wrong', async () => {
  const taken = net.createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const { port } = /** @type {net.AddressInfo} */ (taken.address())
  const { child, ended, said } = start({}, [
    '--on-failure',
    'stay',
    '--listen',
    `127.0.0.1:${port}`
  ])
  try {
    await eventually(said, text => text.includes('cannot report this at'))
    expect(child.exitCode).toBeNull()
  } finally {
    child.kill('SIGTERM')
    expect((await ended)[0]).toBe(0)
    taken.close()
  }
})

it('without --on-failure stay it ends with 2', async () => {
  expect(await memwatch(['exporter', '--data-max', 'much'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--data-max: expected')
  })
})

describe('an unusable data folder', () => {
  /** @type {string} */
  let folder
  beforeEach(() => { folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-stay-')) })
  afterEach(() => fs.rmSync(folder, { recursive: true }))
  const file = () => {
    fs.writeFileSync(path.join(folder, 'file'), '')
    return path.join(folder, 'file')
  }
  /** @type {[title: string, make: () => string, message: (at: string) => string][]} */
  const cases = [
    ['a file', file, at => `${at} is not a folder`],
    ['below a file', () => path.join(file(), 'data'), at => `cannot make the folder ${at}: `],
    ['not to be made', () => '/proc/none/data', at => `cannot make the folder ${at}: `],
    ['not writable', () => '/proc', at => `cannot write to ${at}: `]
  ]
  it.each(cases)('because it is %s is reported at start', async (_, make, message) => {
    const at = make()
    const { code, stderr } = await memwatch([
      'exporter',
      '--listen',
      '127.0.0.1:0',
      '--socket',
      path.join(folder, 'exporter.sock'),
      '--data-dir',
      at
    ])
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining(`memwatch: --data-dir: ${message(at)}`)
    ])
    expect(stderr.trimEnd().split('\n')).toHaveLength(1)
  })
  it.each(cases)(
    'because it is %s is skipped by an exporter that stays',
    async (_, make, message) => {
      const at = make()
      const port = await freePort()
      const { child, ended, said } = start({
        MEMWATCH_ON_FAILURE: 'stay',
        MEMWATCH_LISTEN: `127.0.0.1:${port}`,
        MEMWATCH_SOCKET: path.join(folder, 'exporter.sock'),
        MEMWATCH_DATA_DIR: at
      })
      try {
        const metrics = await eventually(
          () =>
            fetch(`http://127.0.0.1:${port}/metrics`).then(
              response => response.text(),
              () => ''
            ),
          Boolean
        )
        expect(metrics).toMatch(/^memwatch_exporter_history_saving 0$/m)
        expect(said()).toContain(`--data-dir: ${message(at)}`)
      } finally {
        child.kill('SIGTERM')
        expect((await ended)[0]).toBe(0)
      }
    }
  )
})
