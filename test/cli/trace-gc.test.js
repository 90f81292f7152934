'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { spawn, spawnSync } = require('node:child_process')
const { once } = require('node:events')
const { gunzipSync, gzipSync } = require('node:zlib')
const Ajv = require('ajv/dist/2020')
const { findCase } = require('../../engine/verdicts/case')
const { Lives } = require('../../cli/sources/lives')
const { traceGc } = require('../../cli/sources/trace-gc')
const { parseGcLine } = require('../../cli/sources/gc-log-line')
const { signalsOf } = require('../../engine/signals')
const { MEMWATCH } = require('../support/memwatch')
const { defined } = require('../support/defined')

/** @param {import('@memwatch/agent/protocol/frame').Frame['values']} values */
const scavengesOf = ({ gc }) => defined(gc)['minor/ordinary'][0]

const SAMPLES = path.join(__dirname, '../sources')
const samples = fs.readdirSync(SAMPLES).filter(name => name.startsWith('trace-gc-'))
const textOf = name => gunzipSync(fs.readFileSync(path.join(SAMPLES, name))).toString()
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-trace-gc-'))
afterAll(() => fs.rmSync(folder, { recursive: true }))

const MIB = 2 ** 20
const IN_512 = { containerLimitBytes: 512 * MIB }

/**
 * @param {string} text
 * @param {object} [given]
 */
async function judged (text, given = {}) {
  const lives = new Lives(traceGc, given, { onError: error => { throw error } })
  await traceGc.read(
    [
      {
        name: 'app.log',
        head: '',
        bytes: async function * () {
          yield Buffer.from(text)
        }
      }
    ],
    lives,
    given
  )
  return { targets: lives.all, notes: [...lives.notes] }
}
const verdictOf = (target, id) =>
  defined(findCase(target).verdicts.find(({ diagnosis }) => diagnosis === id))
const stateOf = (target, id) => verdictOf(target, id).state
const found = target => findCase(target).verdicts
  .filter(({ state }) => state === 'suspected' || state === 'confirmed')
  .map(({ diagnosis, state }) => `${diagnosis} ${state}`)

/**
 * @param {string[]} args
 * @param {string} [input]
 */
const diagnose = (args, input) =>
  spawnSync(process.execPath, [MEMWATCH, 'diagnose', ...args], { encoding: 'utf8', input })
/**
 * @param {string} name
 * @param {string | Buffer} content
 */
const write = (name, content) => {
  const file = path.join(folder, name)
  fs.writeFileSync(file, content)
  return file
}

/** Parses the GCs of a log independently of memwatch's parser. @param {string} text */
const byHand = text => text.split('\n').filter(line => /\d+ ms: .*->/.test(line)).map(line => {
  const [at, , kind] = line.slice(line.indexOf(']') + 1).trim().split(' ')
  const [sizes, pause] = line.split('MB,')
  return {
    at: Number(at) / 1000,
    major: line.includes('Mark-'),
    kind,
    after: Number(sizes.split('->')[1].trim().split(' ')[0]),
    pause:
      Number((pause.includes('pooled') ? line.split('MB,')[2] : pause).trim().split(' ')[0]) / 1000
  }
})

describe('a line of --trace-gc', () => {
  const majors = { 18: '18', 20: '20', 22: '22 or 24', 24: '22 or 24', 26: '25 or 26' }
  it.each(Object.keys(majors))('of Node %s is always parsed', major => {
    const own = samples.filter(name => name.startsWith(`trace-gc-${major}-`))
    expect(own.length).toBeGreaterThan(1)
    for (const name of own) {
      const lines = textOf(name)
        .split('\n')
        .filter(line => / ms: /.test(line) && line.includes('->'))
      expect(lines.length).toBeGreaterThan(10)
      const parsed = lines.map(parseGcLine)
      expect(lines.filter((_, i) => parsed[i] === undefined)).toEqual([])
      expect(new Set(parsed.map(gc => gc?.node))).toEqual(new Set([majors[major]]))
      expect(new Set(parsed.map(gc => gc?.kind))).toEqual(new Set(['minor', 'major']))
    }
  })
  it('yields all values of the GC', () => {
    const text =
      '2026-11-21T21:00:00Z stdout F [7:0x2d6ece10]    18261 ms: Mark-Compact (reduce) 43.4 ' +
        '(46.0) -> 42.8 (46.2) MB, 6.53 / 0.01 ms  (+ 20.2 ms in 399 steps since start of ' +
          'marking, biggest step 1.0 ms, walltime since start of marking 31 ms) (average mu = ' +
            '0.957, current mu = 0.981) finalize incremental marking via task; GC in old space ' +
              'requested'
    expect(parseGcLine(text)).toEqual({
      pid: 7,
      isolate: '0x2d6ece10',
      atSeconds: 18.261,
      kind: 'major',
      cause: 'ordinary',
      pauseSeconds: 0.00653,
      stepsSeconds: 0.0202,
      usedBeforeBytes: 43.4 * MIB,
      totalBeforeBytes: 46 * MIB,
      usedAfterBytes: 42.8 * MIB,
      totalAfterBytes: 46.2 * MIB,
      filled: false,
      node: '20'
    })
  })
  it.each([
    ['external memory pressure', 'external'],
    ['testing; GC in old space requested', 'forced'],
    ['last resort', 'last_resort'],
    ['allocation failure', 'ordinary'],
    ['task', 'ordinary']
  ])('with the reason %s is %s', (reason, cause) => {
    expect(
      parseGcLine(
        '[1:0xa]  5 ms: Scavenge 5.3 (5.6) -> 5.2 (6.6) MB, 5.0 / 0.0 ms  (average mu = 1.000, ' +
          `current mu = 1.000) ${reason}; `
      )?.cause
    ).toBe(cause)
  })
})

describe("the rules of Node's guide to tracing GCs, on real logs", () => {
  const starving = textOf('trace-gc-20-semi-space-starvation.log.gz')
  const leaking = textOf('trace-gc-20-js-heap-leak.log.gz')
  const steady = textOf('trace-gc-24-healthy-steady.log.gz')

  it('memwatch computes the same time in GC and between GCs as the sums over the log', async () => {
    const gcs = byHand(starving)
    const {
      targets: [target]
    } = await judged(starving)
    const { gcPauseRatio, scavengePauseRatio } = signalsOf(defined(target.window()))
    const end = gcs[gcs.length - 1].at
    const late = gcs.filter(({ at }) => at > end - 30)
    const share = late.reduce((sum, { pause }) => sum + pause, 0) / (end - late[0].at)
    expect(share).toBeGreaterThan(0.12)
    expect(scavengePauseRatio).toBeLessThan(defined(gcPauseRatio))
    expect(defined(gcPauseRatio) / share).toBeGreaterThan(0.97)
    // V8 prints the marking steps before a major GC as part of its line.
    expect(defined(gcPauseRatio) / share).toBeLessThan(1.3)
  })
  it('only the used heap after Mark-Compact shows a leak', async () => {
    const floors = byHand(leaking).filter(({ major }) => major)
    const { targets: [target] } = await judged(leaking)
    const { liveHeapTrend, liveHeapBytes } = signalsOf(defined(target.window()))
    const { slope } = defined(liveHeapTrend)
    const [a, b] = [floors[2], floors[floors.length - 1]]
    expect(defined(liveHeapBytes) / MIB).toBeCloseTo(b.after, 5)
    expect(defined(slope) / MIB / ((b.after - a.after) / (b.at - a.at))).toBeCloseTo(1, 1)
    expect(stateOf(target, 'js-heap-leak')).toBe('suspected')
    expect(stateOf((await judged(leaking, IN_512)).targets[0], 'js-heap-leak')).toBe('confirmed')
    expect(stateOf((await judged(steady)).targets[0], 'js-heap-leak')).not.toMatch(
      /suspected|confirmed/
    )
  })
  it('the time between scavenges shows starvation', async () => {
    const gcs = byHand(starving)
    const end = gcs[gcs.length - 1].at
    const scavenges = gcs.filter(({ major, at }) => !major && at > end - 30)
    const { targets: [target] } = await judged(starving)
    const { scavengesPerSecond } = signalsOf(defined(target.window()))
    const byHandPerSecond = scavenges.length / (end - scavenges[0].at)
    expect(defined(scavengesPerSecond) / byHandPerSecond).toBeCloseTo(1, 1)
    expect(scavengesPerSecond).toBeGreaterThan(50)
    expect(found(target)).toEqual(['semi-space-starvation confirmed'])
    const [{ change }] = verdictOf(target, 'semi-space-starvation').fix
    expect(change.flag).toMatch(/^--max-semi-space-size=(8|16|32)$/)
    expect(found((await judged(steady)).targets[0])).toEqual([])
  })
})

it('a semi-space is never estimated above the maximum that a flag sets', async () => {
  // Between two GCs 1.6 MB are allocated: a large object is among them.
  const line = (/** @type {number} */ i) =>
    `[42:0x1] ${i * 10} ms: Scavenge 5.7 (8.0) -> 4.1 (8.0) MB, 1.00 / 0.00 ms  (average mu = ` +
    '1.000, current mu = 1.000) allocation failure; '
  const text = Array.from({ length: 1000 }, (_, i) => line(i)).join('\n')
  const sizeOf = async (/** @type {object} */ given) => {
    const { targets: [target] } = await judged(text, given)
    return signalsOf(defined(target.window())).semiSpaceCapacityBytes
  }
  expect(await sizeOf({})).toBe(2 * MIB)
  expect(await sizeOf({ nodeOptions: ['--max-semi-space-size=1'] })).toBe(MIB)
})

describe('real logs as the only source', () => {
  it.each(samples.filter(name => name.includes('semi-space-starvation')))(
    '%s confirms starvation, as the log shows the size of the semi-space',
    async name => {
      const {
        targets: [target]
      } = await judged(textOf(name))
      expect(found(target)).toEqual(['semi-space-starvation confirmed'])
    }
  )
  it.each(samples.filter(name => name.includes('js-heap-leak.log')))(
    '%s leads to a suspected leak, confirmed if the limit is given',
    async name => {
      // A heap that fills its limit within a minute is suspected of a leak, too.
      expect(found((await judged(textOf(name))).targets[0])[0]).toBe('js-heap-leak suspected')
      expect(
        found(
          (await judged(textOf(name), { ...IN_512, nodeVersion: name.split('-')[2] })).targets[0]
        )[0]
      ).toBe('js-heap-leak confirmed')
    }
  )
  it.each(samples.filter(name => name.includes('heap-limit-thrash')))(
    '%s leads to a suspected lack of room, confirmed if the limit is given',
    async name => {
      expect(found((await judged(textOf(name))).targets[0])).toContain(
        'heap-limit-thrash suspected'
      )
      expect(
        found(
          (await judged(textOf(name), { ...IN_512, nodeVersion: name.split('-')[2] })).targets[0]
        )
      ).toEqual(['heap-limit-thrash confirmed'])
    }
  )
  it('of a leaking worker lead to a finding that names the worker', async () => {
    const { targets } = await judged(textOf('trace-gc-20-js-heap-leak-worker.log.gz'), IN_512)
    expect(Object.fromEntries(targets.map(target => [target.thread, found(target)]))).toEqual({
      main: [],
      'worker-1': ['js-heap-leak confirmed']
    })
  })
  it.each(samples.filter(name => name.includes('healthy')))(
    '%s ends without a finding, and never had a confirmed one',
    async name => {
      for (const given of [{}, IN_512]) {
        const { targets, notes } = await judged(textOf(name), given)
        expect(notes).toEqual([])
        for (const target of targets) expect(found(target)).toEqual([])
      }
    }
  )
})

describe('lab apps that print their GCs live', () => {
  const LIKE_512 = ['--trace-gc', '--max-semi-space-size=1', '--max-old-space-size=256']
  /**
   * @param {string} app
   * @param {string[]} args
   * @returns {Promise<string>}
   */
  async function logOf (app, args) {
    const child = spawn(
      process.execPath,
      [...LIKE_512, path.join(__dirname, `../../lab/apps/${app}.js`), ...args],
      { env: { ...process.env, NODE_OPTIONS: '' }, stdio: ['ignore', 'pipe', 'ignore'] }
    )
    const chunks = []
    child.stdout.on('data', chunk => chunks.push(chunk))
    await once(child, 'close')
    return Buffer.concat(chunks).toString()
  }
  it('starve, leak and are healthy as expected', async () => {
    const [starving, leaking, steady] = await Promise.all([
      logOf('semi-space-starvation', ['--seconds', '40']),
      logOf('js-heap-leak', ['--seconds', '45', '--rate', '3']),
      logOf('healthy-steady', ['--seconds', '30'])
    ])
    expect(found((await judged(starving)).targets[0])).toEqual(['semi-space-starvation confirmed'])
    expect(
      found((await judged(leaking, { nodeOptions: ['--max-old-space-size=256'] })).targets[0])[0]
    ).toMatch(/js-heap-leak/)
    expect(found((await judged(steady)).targets[0])).toEqual([])
  }, 90_000)

  it('are judged while they run, from a pipe', async () => {
    const app = path.join(__dirname, '../../lab/apps/healthy-steady.js')
    const { status, stdout } = spawnSync(
      '/bin/sh',
      [
        '-c',
        `"${process.execPath}" --trace-gc "${app}" --seconds 4 | "${process.execPath}" ` +
          `"${MEMWATCH}" diagnose --json -`
      ],
      { encoding: 'utf8', env: { ...process.env, NODE_OPTIONS: '' } }
    )
    expect(status).toBe(0)
    const report = JSON.parse(stdout)
    expect(report.source.kind).toBe('trace-gc')
    expect(report.targets).toMatchObject([
      { target: 'stdin', thread: 'main', node: expect.any(String), primary: null }
    ])
  })
})

it('diagnose prints findings from a pipe at once, and the report on Ctrl-C', async () => {
  const child = spawn(process.execPath, [MEMWATCH, 'diagnose', '--json', '-'], {
    env: { ...process.env, NODE_OPTIONS: '' }
  })
  const said = { stdout: '', stderr: '' }
  child.stdout.on('data', chunk => { said.stdout += chunk })
  const found = new Promise(resolve =>
    child.stderr.on('data', chunk => {
      if ((said.stderr += chunk).includes('confirmed')) resolve(undefined)
    })
  )
  child.stdin.write(textOf('trace-gc-20-semi-space-starvation.log.gz'))
  await found
  child.kill('SIGINT')
  const [status] = await once(child, 'close')
  expect(status).toBe(0)
  expect(said.stderr).toMatch(
    /^memwatch: pid \d+ main, after \d+ s: semi-space-starvation suspected\nmemwatch: pid \d+ main, after 18 s: semi-space-starvation confirmed\n$/
  )
  expect(JSON.parse(said.stdout).targets[0].primary.diagnosis).toBe('semi-space-starvation')
})

describe('a log', () => {
  const gc = (pid, isolate, ms, after = 4.3, kind = 'Scavenge') =>
    `[${pid}:${isolate}]  ${ms} ms: ${kind} 4.7 (5.0) -> ${after} (6.0) MB, 3.21 / 0.00 ms  ` +
      '(average mu = 1.000, current mu = 1.000) allocation failure; \n'
  const several = (pid, isolate, ...times) => times.map(ms => gc(pid, isolate, ms)).join('')

  it('of several processes yields a target for each', async () => {
    const { targets } = await judged(
      several(1, '0xa', 30, 2000) +
        several(2, '0xb', 40) +
        several(1, '0xa', 4000) +
        several(2, '0xb', 3000)
    )
    expect(targets.map(({ hello, values }) => [hello.pid, scavengesOf(values)])).toEqual(
      [
        [1, 3],
        [2, 2]
      ]
    )
  })
  it('of a process with a worker recognizes the main thread by its age', async () => {
    const { targets } = await judged(
      several(1, '0xworker'.replace('worker', 'b'), 100, 900) +
        several(1, '0xa', 6000) +
        several(1, '0xb', 1200)
    )
    expect(targets.map(({ thread, frame }) => [thread, frame?.uptimeSeconds]).sort()).toEqual([
      ['main', 6],
      ['worker-1', 1.2]
    ])
  })
  it('of a container that restarts with the same pid yields a session for each start', async () => {
    const { targets } = await judged(several(1, '0xa', 30, 5000) + several(1, '0xa', 30, 2000))
    expect(targets.map(({ thread, values }) => [thread, scavengesOf(values)])).toEqual([
      ['main', 2],
      ['main', 2]
    ])
  })
  it('of a process that ran out of heap reports it, and counts the last GCs once', async () => {
    const last = several(1, '0xa', 5000, 6000)
    const { targets, notes } = await judged(
      several(1, '0xa', 30) +
        last +
        `\n<--- Last few GCs --->\n\n${last}\n<--- JS stacktrace --->\n\nFATAL ERROR: Reached ` +
          'heap limit Allocation failed - JavaScript heap out of memory\n' +
        several(1, '0xc', 20)
    )
    expect(targets.map(({ thread, values }) => [thread, scavengesOf(values)])).toEqual([
      ['main', 3],
      ['main', 1]
    ])
    expect(notes).toEqual([
      expect.stringMatching(/process 1 .* ended because its heap was full: FATAL ERROR: Reached heap limit/)
    ])
  })
  it('of a process that ran out of heap says when it ended, unlike of one that may live', () => {
    const own = several(1, '0xa', 30, 5000)
    const fatal = 'FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n'
    expect(diagnose(['-'], own + fatal).stdout).toMatch(/It ended after 5\ss\./)
    expect(diagnose(['-'], own).stdout).not.toContain('It ended')
  })
  it('with damaged lines is judged without them, and reports their number', async () => {
    const { targets, notes } = await judged(
      several(1, '0xa', 30) + '[1:0xa]  40 ms: Scavenge 4.7 (5.\n' + several(1, '0xa', 50)
    )
    expect(scavengesOf(targets[0].values)).toBe(2)
    expect(notes).toEqual([expect.stringMatching(/^app.log: skipped 1 damaged or unknown lines/)])
  })
  it('with an impossible time does not hang the command', async () => {
    const { targets } = await judged(several(1, '0xa', 30, 99_999_999_999))
    expect(targets).toHaveLength(1)
  })
  it('leaves checks open that need options the log does not contain', () => {
    const file = path.join(SAMPLES, 'trace-gc-20-js-heap-leak.log.gz')
    const open = diagnose([file])
    expect(open.stdout).toMatch(/The source lacks the heap size limit/)
    expect(open.stdout.replaceAll(/\s+/g, ' ')).toMatch(
      /reaches the heap size limit in about .* The heap size limit is unknown; this result assumes 259 MiB\./
    )
    expect(open.stdout.replaceAll(/\s+/g, ' ')).toMatch(
      /This source cannot evaluate .*native-memory-leak.* has no information on RSS/
    )
    const known = diagnose([file, '--memory', '512Mi'])
    expect(known.stdout).not.toMatch(/lacks the heap size limit|this result assumes/)
    expect(known.stdout).toMatch(/CONFIRMED .*\(js-heap-leak/s)
    expect(diagnose([file, '--memory', '512Mi', '--fail-on', 'confirmed']).status).toBe(3)
  })
  it('yields JSON that fits the schema', () => {
    const { stdout } = diagnose([
      '--json',
      path.join(SAMPLES, 'trace-gc-20-semi-space-starvation.log.gz')
    ])
    const validate = new Ajv.Ajv2020({ strict: false }).compile(require('../../docs/report.schema.json'))
    const report = JSON.parse(stdout)
    validate(report)
    expect(validate.errors).toBe(null)
    expect(report.source).toMatchObject({ kind: 'trace-gc', notes: [] })
    expect(report.targets[0].primary.diagnosis).toBe('semi-space-starvation')
  })
  it.each([
    [
      'one that is compressed and breaks off',
      () => {
        const whole = fs.readFileSync(
          path.join(SAMPLES, 'trace-gc-20-semi-space-starvation.log.gz')
        )
        return write('cut.gz', whole.subarray(0, whole.length / 2))
      },
      /is incomplete: diagnosed up to its last whole line/
    ],
    [
      'one that is compressed, under another name',
      () => write('packed.txt', gzipSync(several(1, '0xa', 30, 2000))),
      /packed main/
    ]
  ])('%s is judged', (_, make, message) => {
    const { status, stdout, stderr } = diagnose([make()])
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout).toMatch(message)
  })
  it.each([
    [
      'a file that is not there',
      () => [path.join(folder, 'none.log')],
      /cannot read .*none.log: no such file/
    ],
    ['a folder', () => [folder], /it is a folder/],
    ['an empty file', () => [write('empty.log', '')], /empty.log is empty/],
    ['a binary', () => [write('app.bin', Buffer.from([1, 0, 2, 0]))], /app.bin is binary/],
    [
      'a log without GCs',
      () => [write('app.log', 'listening on 3000\n')],
      /app.log is of an unknown type. memwatch diagnose reads: .*--trace-gc/
    ],
    [
      '--trace-gc-nvp',
      () => [write('nvp.log', '[7:0x1]      11 ms: pause=1.0 mutator=0.0 gc=s reduce_memory=0\n')],
      /expected lines of --trace-gc, got those of --trace-gc-nvp/
    ],
    [
      'two kinds',
      () => [
        write('one.log', several(1, '0xa', 30)),
        write('a.ndjson', '{"memwatch":"recording","version":1}\n')
      ],
      /one kind: .*one.log is a --trace-gc log, .*a.ndjson is a recording of memwatch; diagnose/
    ],
    [
      'a damaged gzip file',
      () => [
        write('bad.gz', Buffer.concat([Buffer.from([0x1f, 0x8b]), Buffer.from('no gzip at all')]))
      ],
      /cannot read .*bad.gz: expected gzip, got a damaged or uncompressed file/
    ],
    [
      'an invalid limit',
      () => ['--memory', 'much', write('one.log', several(1, '0xa', 30))],
      /--memory: expected an amount of memory such as 512Mi/
    ],
    [
      'options that are none',
      () => ['--flags=512', write('one.log', several(1, '0xa', 30))],
      /--flags: expected flags/
    ]
  ])('%s is refused with status 2 and the reason', (_, make, message) => {
    const { status, stdout, stderr } = diagnose(make())
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
    expect(stderr).toMatch(message)
    expect(stderr).not.toMatch(/at .*\.js:/)
  })
})
