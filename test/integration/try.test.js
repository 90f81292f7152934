'use strict'

const fs = require('node:fs')
const http = require('node:http')
const os = require('node:os')
const path = require('node:path')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { createMemoryGroup } = require('../../exporter/process/memory-group')
const { findApp } = require('../../lab')
const { replayFile } = require('../../cli/sources/replay-file')
const { environment } = require('../support/agent-collector')
const { memwatch, MEMWATCH } = require('../support/memwatch')
const { defined } = require('../support/defined')
const { itInGroup } = require('../support/memory-groups')

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-try-test-'))
afterAll(() => fs.rmSync(folder, { recursive: true }))

let made = 0
const keep = () => path.join(folder, `kept-${made++}`)
/**
 * @param {string} name
 * @param {string} code
 */
function script (name, code) {
  const file = path.join(folder, name)
  fs.writeFileSync(file, code)
  return file
}
const server = script(
  'server.js',
  "require('node:http').createServer((request, response) => response.end('hello')).listen(0, " +
    "'127.0.0.1', function () { require('node:fs').writeFileSync(process.argv[2], " +
      'String(this.address().port)) })'
)
const client = script('client.js', `
  const port = require('node:fs').readFileSync(process.argv[2], 'utf8')
  async function main () {
    for (let i = 0; i < 50; i++) await (await fetch('http://127.0.0.1:' + port)).text()
    console.log('asked')
    console.log(JSON.stringify({ latency: { p99: 12 }, requests: { total: 50, average: 25 } }))
  }
  main()`)
const short = script(
  'short.js',
  'setTimeout(() => process.exit(Number(process.argv[2] ?? 0)), 1500)'
)

const here = createMemoryGroup({ limitBytes: 512 * 2 ** 20, name: 'try-test' })
afterAll(() => here.remove())

describe('memwatch try', () => {
  const kept = keep()
  /**
   * Result of a run that takes more than a minute. The other tests run at the same time.
   * @type {ReturnType<typeof memwatch>}
   */
  let attempted
  beforeAll(() => {
    if (!here.supported) return
    attempted = memwatch([
      'try',
      '--json',
      '--memory',
      '512Mi',
      '--for',
      '30',
      '--keep',
      kept,
      '--',
      process.execPath,
      defined(findApp('semi-space-starvation')).script
    ])
  })

  it('on Ctrl-C ends the app, keeps recordings and prints results so far', async () => {
    const kept = keep()
    const app = script(
      'forever.js',
      'setInterval(() => {}, 1000); require("node:fs").writeFileSync(process.argv[2], ' +
        'String(process.pid))'
    )
    const pidFile = path.join(folder, 'forever.pid')
    const child = spawn(
      process.execPath,
      [MEMWATCH, 'try', '--for', '600', '--keep', kept, '--', process.execPath, app, pidFile],
      { env: environment(), stdio: ['ignore', 'pipe', 'pipe'] }
    )
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', chunk => { stdout += chunk })
    child.stderr.on('data', chunk => { stderr += chunk })
    const page = await new Promise(resolve => child.stderr.on('data', () => {
      const [, url] = /live at (\S+)\n/.exec(stderr) ?? []
      if (url) resolve(url)
    }))
    // The event stream has the target after its first frame.
    await new Promise(resolve => {
      const request = http.get(`${page}api/v1/live`, response => response.on('data', chunk => {
        if (!chunk.includes('"uptimeSeconds"')) return
        request.destroy()
        resolve(undefined)
      }))
    })
    child.kill('SIGINT')
    expect((await once(child, 'close'))[0]).toBe(130)
    expect(stdout).toMatch(/Peak RSS +\d+ MiB\n/)
    expect(stdout).toContain('Interrupted: this is the result so far.')
    expect(stdout).toContain(`Kept: ${kept}`)
    const { frames, cut } = await replayFile(path.join(kept, 'before/1.ndjson.gz'))
    expect({ some: frames > 0, cut }).toEqual({ some: true, cut: false })
    expect(fs.existsSync(path.join(kept, 'after'))).toBe(false)
    expect(() => process.kill(Number(fs.readFileSync(pidFile, 'utf8')), 0)).toThrow('ESRCH')
  })

  it('makes no second run if nothing is confirmed, and says so', async () => {
    const kept = keep()
    const { code, stdout } = await memwatch([
      'try',
      '--repeat',
      '2',
      '--keep',
      kept,
      '--',
      process.execPath,
      short
    ])
    expect({ code, stdout }).toEqual({
      code: 3,
      stdout: expect.stringContaining('No finding is confirmed, so no fix was tried.')
    })
    expect([fs.readdirSync(kept), fs.readdirSync(path.join(kept, 'before'))]).toEqual([
      ['before'],
      ['1.ndjson.gz', '1.out']
    ])
    const again = await memwatch(['try', '--keep', kept, '--', process.execPath, short])
    expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining('already contains runs') })
  })

  it('says if no process reported', async () => {
    const { code, stdout } = await memwatch(
      ['try', '--keep', keep(), '--', process.execPath, '-e', 'process.exit(1)'])
    expect({ code, stdout }).toEqual({
      code: 7,
      stdout: expect.stringContaining('No Node.js process reported, so no fix was tried.')
    })
    expect(stdout).not.toContain('Nothing is confirmed')
  })

  it('tries a given change whatever the findings, and prints its effect', async () => {
    const { code, stdout } = await memwatch([
      'try',
      '--json',
      '--keep',
      keep(),
      '--with',
      '--max-semi-space-size=8',
      '--with',
      'MALLOC_ARENA_MAX=1',
      '--',
      process.execPath,
      short
    ])
    const { outcome, finding, comparison } = JSON.parse(stdout)
    expect({ code, outcome, finding }).toEqual({ code: 0, outcome: 'compared', finding: null })
    expect(comparison.fix).toMatchObject({
      diagnosis: null,
      title: '--max-semi-space-size=8 MALLOC_ARENA_MAX=1',
      applied: true,
      outcomes: []
    })
    expect(comparison.after.runs.length).toBe(1)
    const missing = await memwatch([
      'try',
      '--keep',
      keep(),
      '--with',
      'LD_PRELOAD=libnosuch.so',
      '--',
      process.execPath,
      short
    ])
    expect(missing).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--with: the loader does not find libnosuch.so')
    })
  })

  it('does not try changes of code', async () => {
    const { code, stdout, stderr } = await memwatch([
      'try',
      '--json',
      '--keep',
      keep(),
      '--diagnosis',
      'event-loop-blocked',
      '--for',
      '25',
      '--',
      process.execPath,
      defined(findApp('event-loop-blocked-jobs')).script
    ])
    expect({ code, stderr }).toEqual({
      code: 4,
      stderr: expect.stringMatching(/not tried: .*: it is a change in the code/)
    })
    expect(JSON.parse(stdout)).toMatchObject({
      outcome: 'nothing_to_apply',
      finding: { diagnosis: 'event-loop-blocked' },
      skipped: [{ reason: 'it is a change in the code' }],
      comparison: { after: { runs: [] } }
    })
  })

  it.each([
    ['', []],
    [' in a memory group', here.supported ? ['--memory', '256Mi'] : []]
  ])('ends with 127 if the command does not exist%s', async (_, options) => {
    const { code, stderr } = await memwatch(['try', ...options, '--', '/no/such/command'])
    expect({ code, stderr }).toEqual({
      code: 127,
      stderr: expect.stringMatching(/\/no\/such\/command.*(no such command|not found)/i)
    })
  })

  it('starts the load once the app listens, keeps its output, and then ends the app', async () => {
    const kept = keep()
    const port = path.join(folder, 'port')
    const { code, stdout, stderr } = await memwatch([
      'try',
      '--json',
      '--keep',
      kept,
      '--load',
      `"${process.execPath}" ${client} ${port}`,
      '--',
      process.execPath,
      server,
      port
    ])
    expect({ code, stderr }).toEqual({
      code: 3,
      stderr: expect.stringMatching(/the app is up; load: [^]*the load has ended\n/)
    })
    expect(fs.readFileSync(path.join(kept, 'before/1.load.out'), 'utf8')).toMatch(/^asked\n\{/)
    const { rows } = JSON.parse(stdout).comparison
    const of = figure => rows.find(row => row.figure === figure).before.median
    expect([of('requests'), of('requestsPerSecond'), of('latencyP99Seconds')]).toEqual([
      50, 25, 0.012
    ])
    // Ten seconds for the app to settle.
    expect(of('watchedSeconds')).toBeGreaterThan(10)
  }, 60_000)

  it('ends with 2 if the load command does not exist', async () => {
    const port = path.join(folder, 'port-2')
    const { code, stderr } = await memwatch([
      'try',
      '--keep',
      keep(),
      '--load',
      'no-such-load',
      '--',
      process.execPath,
      server,
      port
    ])
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringContaining(
        '--load: cannot run "no-such-load": the shell exited with status 127'
      )
    })
  })

  itInGroup('applies the fix in an equal container, and the finding disappears', async () => {
    const { code, stdout, stderr } = await attempted
    const attempt = JSON.parse(stdout)
    expect({ code, outcome: attempt.outcome, stderr }).toEqual({
      code: 0,
      outcome: 'fixed',
      stderr: expect.stringMatching(/trying: Let semi-spaces grow to \d+ MiB/)
    })
    const { comparison, finding } = attempt
    expect(finding).toMatchObject({ diagnosis: 'semi-space-starvation', state: 'confirmed' })
    expect(comparison.fix).toMatchObject({
      applied: true,
      outcomes: [
        { signal: 'gcPauseRatio' },
        { signal: 'scavengesPerSecond' },
        { signal: 'rssBytes' }
      ]
    })
    // Other findings depend on the load of the machine.
    expect(comparison.verdicts).toContainEqual({
      diagnosis: 'semi-space-starvation',
      change: 'gone',
      before: 1,
      after: 0
    })
    const row = figure => comparison.rows.find(row => row.figure === figure)
    expect(row('scavengesPerSecond').changeRatio).toBeLessThan(-0.5)
    // The app reports its work on its last line.
    expect(row('cpuPerRequestSeconds').changeRatio).toBeLessThan(0)
    // The stored recordings lead to the same verdicts.
    const [before, after] = await Promise.all(
      ['before', 'after'].map(side =>
        memwatch(['diagnose', '--json', path.join(kept, side, '1.ndjson.gz')])
      )
    )
    expect(JSON.parse(before.stdout).targets[0].primary.diagnosis).toBe('semi-space-starvation')
    expect(JSON.parse(after.stdout).targets[0].primary).toBeNull()
    const compared = JSON.parse(
      (await memwatch(['compare', '--json', path.join(kept, 'before'), path.join(kept, 'after')]))
        .stdout
    )
    expect(compared).toEqual(comparison)
  }, 120_000)
})
