'use strict'

const { spawn } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const path = require('node:path')
const { apps, findApp } = require('../../lab')

const PARALLEL = 2

/**
 * @param {string} script
 * @param {string[]} args
 * @param {NodeJS.ProcessEnv} [env]
 */
function start (script, args, env = {}) {
  const child = spawn(process.execPath, [script, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env }
  })
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk) => { output.stdout += chunk })
  child.stderr.on('data', (chunk) => { output.stderr += chunk })
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal, ...output }))
  return { child, ended }
}

/** @param {string} stdout */
function summaryOf (stdout) {
  return JSON.parse(stdout.trimEnd().split('\n').pop() ?? '')
}

/**
 * Waits until the app has started its load generator, and returns its pid.
 * @param {number} pid
 */
async function loadOf (pid) {
  for (;;) {
    const [child] = fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')
    // Between fork and exec the child still has the app's command line.
    if (child && commandLine(child).includes('load.js')) return child
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** @param {string} pid */
function commandLine (pid) {
  try {
    return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}

/** @param {string} pid */
async function gone (pid) {
  while (commandLine(pid) !== '') await new Promise((resolve) => setTimeout(resolve, 20))
}

describe('the lab registry', () => {
  test('lists exactly the apps of the folder', () => {
    const files = fs.readdirSync(path.join(__dirname, '../../lab/apps')).sort()
    expect(apps.map(({ script }) => path.basename(script)).sort()).toEqual(files)
  })

  test.each(apps.map((app) => [app.id, app]))('%s has a complete row', (id, app) => {
    expect(app.script).toBe(path.resolve(__dirname, '../../lab/apps', `${id}.js`))
    expect(app.diagnosis === null && app.opportunity === undefined).toBe(id.startsWith('healthy-'))
    expect(id.startsWith(app.diagnosis ?? app.opportunity ?? 'healthy-')).toBe(true)
    expect(app.memoryLimitBytes).toBeGreaterThanOrEqual(256 * 2 ** 20)
    expect(app.fixedBy).toMatch(app.diagnosis === null ? /^none$/ : /^(code|fix|none)$/)
    expect(app.seconds).toBeGreaterThanOrEqual(30)
    expect(app.about).toMatch(/^[A-Z0-9].*\.$/)
  })

  test('finds an app by its id', () => {
    expect(findApp('healthy-idle')?.title).toBe('Idle server')
    expect(findApp('healthy')).toBeUndefined()
  })
})

describe('an app', () => {
  test('of every kind runs, broken and fixed, exits with 0 and prints a summary', async () => {
    const waiting = apps.flatMap(app =>
      [[], ...(app.fixedBy === 'code' ? [['--fixed']] : [])].map(form => ({ app, form }))
    )
    const runs = waiting.length
    /** @type {string[]} */
    const results = []
    async function lane () {
      for (let next = waiting.shift(); next; next = waiting.shift()) {
        const { app, form } = next
        const { code, stdout, stderr } = await start(app.script, ['--seconds', '1', ...form]).ended
        // Node.js warns of many listeners: of a leak, and of many subscribers on a busy machine. It
        // warns again when the list was empty meanwhile, and gives the hint only the first time.
        const warning = /^\(node:\d+\) MaxListenersExceededWarning: .*\n(\(Use .*\n)?/gm
        const complaints = stderr.replace(warning, '')
        // A failed app has no summary, so its output is compared first, and shown in the error.
        expect({ app: app.id, form, code, complaints }).toEqual({
          app: app.id,
          form,
          code: 0,
          complaints: ''
        })
        const { lab, app: id, seconds } = summaryOf(stdout)
        // On a busy machine any app may be late.
        const ranSeconds = seconds >= 1 ? 'one at least' : seconds
        expect({ lab, id, ranSeconds }).toEqual({
          lab: 'summary',
          id: app.id,
          ranSeconds: 'one at least'
        })
        results.push(id)
      }
    }
    await Promise.all(Array.from({ length: PARALLEL }, lane))
    expect(results).toHaveLength(runs)
  }, 240_000)

  test('serves requests, and more of them at a higher rate', async () => {
    const { script } = /** @type {import('../../lab').LabApp} */ (findApp('healthy-steady'))
    const [single, triple] = await Promise.all(
      ['1', '3'].map(rate => start(script, ['--seconds', '3', '--rate', rate]).ended)
    )
    const { requests } = summaryOf(single.stdout)
    expect(requests).toBeGreaterThan(100)
    expect(summaryOf(triple.stdout).requests).toBeGreaterThan(requests * 1.5)
  })

  test.each([['SIGTERM'], ['SIGINT']])('ends cleanly on %s', async (signal) => {
    const { child, ended } = start(findApp('healthy-steady')?.script ?? '', [])
    await loadOf(child.pid ?? 0)
    child.kill(/** @type {NodeJS.Signals} */ (signal))
    const { code, stdout } = await ended
    expect(code).toBe(0)
    expect(summaryOf(stdout)).toMatchObject({ lab: 'summary', app: 'healthy-steady' })
  })

  test.each([['0'], ['Infinity'], ['soon']])('refuses --seconds %s', async (seconds) => {
    const { code, stderr } = await start(findApp('healthy-idle')?.script ?? '', [
      '--seconds',
      seconds
    ]).ended
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: `--seconds must be a number above 0, not ${seconds}\n`
    })
  })
})

const describeLinux = process.platform === 'linux' ? describe : describe.skip

describeLinux('the load generator', () => {
  test('the load generator is not watched', async () => {
    const { child, ended } = start(findApp('healthy-idle')?.script ?? '', [], {
      NODE_OPTIONS: '--no-deprecation'
    })
    const load = await loadOf(child.pid ?? 0)
    const env = fs.readFileSync(`/proc/${load}/environ`, 'utf8').split('\0')
    child.kill()
    await ended
    expect(env).toContain('MEMWATCH_DISABLED=1')
    expect(env.filter((entry) => entry.startsWith('NODE_OPTIONS='))).toEqual([])
  })

  test('the load generator ends with its app, even if that is killed', async () => {
    const { child, ended } = start(findApp('healthy-steady')?.script ?? '', [])
    const load = await loadOf(child.pid ?? 0)
    child.kill('SIGKILL')
    expect((await ended).signal).toBe('SIGKILL')
    await gone(load)
  })
})
