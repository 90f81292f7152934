'use strict'

const fs = require('node:fs')
const { createServer } = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const Ajv = require('ajv/dist/2020').default
const { report: schema } = require('../../exporter/expose/schemas')
const { MEMWATCH } = require('../support/memwatch')
const { defined } = require('../support/defined')

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-run-test-'))
afterAll(() => fs.rmSync(folder, { recursive: true }))

/**
 * @param {string[]} args
 * @param {object} [options]
 */
function memwatch (args, { env = {}, onStdout = () => {}, onStderr = () => {} } = {}) {
  const child = spawn(process.execPath, [MEMWATCH, ...args], {
    env: { ...process.env, NODE_OPTIONS: '', ...env },
    stdio: ['ignore', 'pipe', 'pipe']
  })
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', chunk => { output.stdout += chunk; onStdout(child, output) })
  child.stderr.on('data', chunk => { output.stderr += chunk; onStderr(child, output) })
  const done = once(child, 'close').then(([code, signal]) => ({ code, signal, ...output }))
  return { child, done }
}

/**
 * Writes a script to a file, whose name becomes the name of the target.
 * @param {string} name
 * @param {string} code
 */
function script (name, code) {
  const file = path.join(folder, name)
  fs.writeFileSync(file, code)
  return file
}
const wait = script('wait.js', 'console.log("hello from the app"); setInterval(() => {}, 1000)')
const twoSeconds = script(
  'two-seconds.js',
  'console.log("hello from the app"); setTimeout(() => process.exit(Number(process.argv[2] ?? ' +
    '0)), 1500)'
)

/** A zombie has ended, but its parent has not read its status. @param {number} pid */
const lives = pid => {
  try {
    return !/\) Z /.test(fs.readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}

describe('memwatch run', () => {
  it.each([0, 7])('ends with the status of the command: %i', async status => {
    const { code, stdout } = await memwatch([
      'run',
      '--',
      process.execPath,
      twoSeconds,
      String(status)
    ]).done
    expect(code).toBe(status)
    expect(stdout).toContain('hello from the app')
    expect(stdout).toContain('two-seconds main')
    expect(stdout).toContain('Undecided: ')
  })

  it('says how to capture if a fix names memwatch capture, unless its exporter has an address', async () => {
    const blocked = script('blocked.js', `
      const server = require('node:http').createServer((_, response) => {
        // CPU time: on a busy machine, the thread computes only for a part of the time.
        for (const from = process.cpuUsage(); process.cpuUsage(from).user < 300_000;);
        response.end()
      }).listen(0, '127.0.0.1', () => {
        setInterval(() => require('node:http').get({ port: server.address().port }), 400)
      })`)
    // For 20 s, a thread that waits for a CPU may be undecided.
    const run = async (...options) => (await memwatch(
      ['run', '--for', '45', ...options, '--', 'node', blocked],
      {
        onStderr: (child, { stderr }) => {
          if (/event-loop-blocked (suspected|confirmed)/.test(stderr)) child.kill('SIGINT')
        }
      }
    ).done).stdout
    const [without, within] = await Promise.all([run(), run('--listen', '127.0.0.1:0')])
    expect(without).toMatch(/memwatch\s+capture\s+blocked\s+cpu_profile/)
    expect(without).toMatch(/capture works while this command runs with --listen/)
    expect(within).not.toMatch(/works while this command runs/)
  }, 60_000)

  it('ends with 128 + N if signal N ended the command', async () => {
    const { code } = await memwatch([
      'run',
      '--',
      process.execPath,
      '-e',
      "process.kill(process.pid, 'SIGKILL')"
    ]).done
    expect(code).toBe(137)
  })

  it('queries malloc unless the environment forbids it', async () => {
    const sourcesOf = async env => {
      const { stdout } = await memwatch(['run', '--json', '--', process.execPath, twoSeconds], {
        // Malloc is asked between two frames, of which a busy machine gets few in two seconds.
        env: { MEMWATCH_INTERVAL_SECONDS: '0.2', ...env }
      }).done
      const { parts } = JSON.parse(stdout).targets[0].memory
      return parts
        .filter(({ part, bytes }) => part.startsWith('allocator_') && bytes > 0)
        .map(({ part }) => part)
    }
    expect(await sourcesOf({})).toContain('allocator_in_use')
    expect(await sourcesOf({ MEMWATCH_ALLOCATOR_ACCESS: 'off' })).toEqual(['allocator_unasked'])
  })

  it('prints only the report to stdout with --json, by its schema', async () => {
    const { code, stdout, stderr } = await memwatch([
      'run',
      '--json',
      '--',
      process.execPath,
      twoSeconds
    ]).done
    expect(code).toBe(0)
    const report = JSON.parse(stdout)
    const validate = new Ajv({ strict: false }).compile(schema)
    expect(validate(report) || validate.errors).toBe(true)
    expect(report).toMatchObject({
      schema: 1,
      exit: { code: 0, signal: null },
      targets: [{ target: 'two-seconds', thread: 'main', primary: null }]
    })
    expect(report.targets[0].node).toBe(process.versions.node)
    expect(stderr).toContain('hello from the app')
  })

  it('ends the command after --for, which is no failure', async () => {
    const file = path.join(folder, 'report.json')
    const { code } = await memwatch([
      'run',
      '--for',
      '1.5',
      '--report',
      file,
      '--',
      process.execPath,
      wait
    ]).done
    expect(code).toBe(0)
    const report = JSON.parse(fs.readFileSync(file, 'utf8'))
    expect(report.exit).toEqual({ code: null, signal: 'SIGTERM' })
    expect(report.targets).toHaveLength(1)
  })

  it('passes SIGTERM on and leaves nothing running, grandchildren included', async () => {
    const parent = script(
      'parent.js',
      `
      const child = require('child_process').spawn(process.execPath, ['-e', 'process.on("SIGTERM", () => {}); setInterval(() => {}, 1000); process.send("deaf")'], { detached: true, stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
      process.on('SIGTERM', () => process.exit(5))
      setInterval(() => {}, 1000)
      child.once('message', () => console.log('pids', process.pid, child.pid))`
    )
    let told = false
    const { child, done } = memwatch(['run', '--', process.execPath, parent], {
      onStdout (child, output) {
        if (!told && /pids \d+ \d+\n/.test(output.stdout)) told = child.kill('SIGTERM')
      }
    })
    const { code, stdout } = await done
    expect(code).toBe(5)
    const [, ...pids] = defined(/pids (\d+) (\d+)/.exec(stdout)).map(Number)
    expect(pids.filter(lives)).toEqual([])
    expect(lives(defined(child.pid))).toBe(false)
  })

  it('keeps existing NODE_OPTIONS', async () => {
    const { stdout } = await memwatch(
      ['run', '--', process.execPath, '-p', 'v8.getHeapStatistics().heap_size_limit'],
      { env: { NODE_OPTIONS: '--max-old-space-size=100 --max-semi-space-size=1' } }
    ).done
    expect(stdout).toContain(String(103 * 2 ** 20))
  })

  it.each([
    [
      'its own process',
      [process.execPath, '--max-old-space-size=250'],
      /RSS rose from .* by .*\/s/
    ],
    [
      'one that a shell started',
      ['sh', '-c', '"$0" "$@"; exit $?', process.execPath, '--max-old-space-size=60'],
      /\(exit status 134\)/
    ]
  ])(
    'reports the end of a program that never returned to its event loop: %s',
    async (_, command, growth) => {
      const leak = script(
        'sync-leak.js',
        'const kept = []; for (;;) kept.push(new Array(1000).fill(kept.length + 0.5))'
      )
      const { code, stdout } = await memwatch(['run', '--', ...command, leak]).done
      const text = stdout.replace(/\s+/g, ' ')
      expect(code).toBe(134)
      expect(text).toMatch(/The command ended with SIGABRT/)
      expect(text).toMatch(growth)
      expect(text).toMatch(
        /JavaScript heap out of memory.*--heapsnapshot-near-heap-limit=1.*--report-on-fatalerror/
      )
      expect(text).not.toContain('No Node.js process reported')
      const report = JSON.parse(
        (await memwatch(['run', '--json', '--', ...command, leak]).done).stdout
      )
      const validate = new Ajv({ strict: false }).compile(schema)
      expect([validate(report), validate.errors]).toEqual([true, null])
      expect(report.ending).toMatchObject({ reason: 'heap_oom' })
    },
    60_000
  )
  it('says that no process reported if the command is not Node.js', async () => {
    const { code, stdout } = await memwatch(['run', '--', 'true']).done
    expect(code).toBe(0)
    expect(stdout).toContain('No Node.js process reported')
  })
  it('says that a command failed before its app ran', async () => {
    const missing = path.join(folder, 'missing.js')
    const { code, stdout } = await memwatch(['run', '--', process.execPath, missing]).done
    expect(code).toBe(1)
    expect(stdout.replace(/\s+/g, ' '))
      .toMatch(/No Node.js process reported. The command failed after [\d.]+ s: its own output/)
  })

  it.each([
    [
      'no process reported, as there was no Node.js',
      ['true'],
      'confirmed',
      4,
      'No Node.js process reported'
    ],
    [
      'no process reported, as NODE_OPTIONS was not passed on',
      ['env', '-u', 'NODE_OPTIONS', process.execPath, twoSeconds],
      'suspected',
      4,
      'No Node.js process reported'
    ],
    ['a leak check is undecided', [process.execPath, twoSeconds], 'undecided', 3, 'Undecided: '],
    [
      'a leak check is undecided, and only findings count',
      [process.execPath, twoSeconds],
      'suspected',
      0,
      'Undecided: '
    ]
  ])('has a status of its own with --fail-on if %s', async (_, command, state, status, text) => {
    const { code, stdout } = await memwatch(['run', '--fail-on', state, '--', ...command]).done
    expect(stdout).toContain(text)
    expect(code).toBe(status)
  })

  it.each(['run', 'simulate', 'diagnose'])(
    'lists the statuses of --fail-on in %s --help',
    async name => {
      const { stdout } = await memwatch([name, '--help']).done
      expect(stdout.replace(/\s+/g, ' ')).toContain('with 4 if no process was evaluated')
    }
  )

  it('ends quietly if the reader of its output stops, like head', async () => {
    const { child, done } = memwatch(['simulate', '--help'])
    child.stdout.destroy()
    expect(await done).toMatchObject({ code: 0, stderr: '' })
  })

  it.each([
    [
      'no such command',
      ['run', '--', '/no/such/command'],
      127,
      'cannot run /no/such/command: no such command'
    ],
    ['a folder', ['run', '--', os.tmpdir()], 126, `cannot run ${os.tmpdir()}: it is a folder`],
    [
      'a script that is not executable',
      ['run', '--', script('not-executable.js', ''), '--port', '8 0'],
      126,
      `the file is not executable; run it with Node.js: node ${folder}/not-executable.js --port '8 0'`
    ],
    ['no command', ['run'], 2, 'memwatch: expected a command after --, or --attach PROCESS'],
    ['a command without required arguments', ['fix'], 2, 'memwatch fix --help lists'],
    [
      'a wrong --for',
      ['run', '--for', 'soon', '--', 'true'],
      2,
      '--for: expected a time such as 90, 90s, 5m, 24h or 7d, got "soon"'
    ],
    [
      'a wrong --fail-on',
      ['run', '--fail-on', 'ok', '--', 'true'],
      2,
      '--fail-on: expected confirmed, suspected or undecided'
    ],
    [
      'a report file that is not writable',
      ['run', '--report', '/no/such/folder/x', '--', 'true'],
      2,
      '--report: cannot write'
    ],
    ['a misspelt option', ['run', '--jsno', '--', 'true'], 2, 'Did you mean --json?'],
    [
      'a flag of Node.js before the command',
      ['run', '--max-old-space-size=100', '--', 'true'],
      2,
      'memwatch run -- node --max-old-space-size=100 server.js'
    ],
    ['a misspelt command', ['rnu'], 2, 'Did you mean run?'],
    [
      'an unknown app',
      ['simulate', 'semi-space-starvatoin'],
      2,
      'did you mean semi-space-starvation?'
    ],
    [
      'an incomplete name of an app',
      ['simulate', 'semi-space'],
      2,
      'did you mean semi-space-starvation?'
    ],
    ['an unknown name of an app', ['simulate', 'x'], 2, 'no app "x" (memwatch simulate --help'],
    [
      'an absent Node.js',
      ['simulate', 'healthy', '--node', '/no/such/node'],
      2,
      '--node: expected an executable file, got "/no/such/node"'
    ],
    [
      'an absent token',
      ['exporter', '--token-file', '/no/such/token'],
      2,
      '--token-file: ENOENT: no such file or directory'
    ],
    [
      'a misspelt variable',
      ['exporter'],
      2,
      'did you mean MEMWATCH_SOCKET?',
      { MEMWATCH_SOKET: 'x' }
    ],
    [
      'an invalid address',
      ['exporter', '--listen', 'x'],
      2,
      '--listen: expected HOST:PORT'
    ]
  ])('%s gets a clear message', async (_, args, status, message, ...env) => {
    const { code, stderr } = await memwatch(args, { env: env[0] }).done
    expect(stderr).toContain(message)
    expect(code).toBe(status)
  })

  it.each([
    ['run', '--', 'true'], ['exporter', '--socket', path.join(folder, 'taken.sock')]
  ])('%s names the option whose port is taken', async (name, ...args) => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
    const at = `127.0.0.1:${port}`
    try {
      expect(await memwatch([name, '--listen', at, ...args]).done).toMatchObject({
        code: 2,
        stdout: '',
        stderr: `memwatch: --listen: cannot listen: another process listens at ${at}; choose ` +
          'another port\n'
      })
    } finally {
      server.close()
    }
  })
})
