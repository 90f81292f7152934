'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFileSync, spawn, spawnSync } = require('node:child_process')
const { gzipSync } = require('node:zlib')
const { once } = require('node:events')
const Ajv = require('ajv/dist/2020')
const { fields } = require('@memwatch/agent/protocol/frame')
const { findCase } = require('../../engine/verdicts/case')
const { diagnoses } = require('../../engine/diagnoses')
const { fileSources, judgeSource, openAll } = require('../../cli/sources')
const { cannotTell } = require('../../cli/sources/support')
const { report } = require('../../cli/sources/report')
const { traceGc } = require('../../cli/sources/trace-gc')
const { promClient, memwatchMetrics } = require('../../cli/sources/prometheus')
const { gcProfiler } = require('../../cli/sources/gc-profiler')
const { MEMWATCH } = require('../support/memwatch')
const { defined } = require('../support/defined')

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-sources-'))
afterAll(() => fs.rmSync(folder, { recursive: true }))
const MIB = 2 ** 20
const env = { ...process.env, NODE_OPTIONS: '' }

/**
 * @param {string} name
 * @param {string | Buffer} content
 */
const write = (name, content) => {
  const file = path.join(folder, name)
  fs.writeFileSync(file, content)
  return file
}
/** @param {string[]} args */
const diagnose = args =>
  spawnSync(process.execPath, [MEMWATCH, 'diagnose', ...args], { encoding: 'utf8' })
/**
 * @param {string[]} files
 * @param {object} [given]
 */
async function judged (files, given = {}) {
  const { kind, inputs } = await openAll(files)
  return judgeSource(/** @type {any} */ (kind), inputs, given, { onError: error => { throw error } })
}
const verdictOf = (target, id) =>
  defined(findCase(target).verdicts.find(({ diagnosis }) => diagnosis === id))
const found = target => findCase(target).verdicts
  .filter(({ state, opportunity }) =>
    !opportunity && (state === 'suspected' || state === 'confirmed'))
  .map(({ diagnosis, state }) => `${diagnosis} ${state}`)

describe('the diagnoses that a source supports', () => {
  /**
   * Diagnoses that a source supports, in one text.
   * @param {string} title
   * @param {string[]} fields
   */
  const source = (title, fields) =>
    /** @type {Parameters<typeof cannotTell>[0]} */ (/** @type {unknown} */ ({ title, fields }))
  it('are all if it has every field', () => {
    expect([...cannotTell(source('all', Object.keys(fields)))]).toEqual([])
  })
  it('are none if it has no field', () => {
    expect(cannotTell(source('nothing', [])).size).toBe(diagnoses.length)
  })
  it('are computed for each source', () => {
    const tells = Object.fromEntries(
      fileSources.map(source => [
        source.id,
        diagnoses.map(({ id }) => id).filter(id => !cannotTell(source).has(id))
      ])
    )
    expect(tells).toMatchObject({
      'trace-gc': ['js-heap-leak', 'heap-limit-thrash', 'semi-space-starvation'],
      'gc-profiler': ['js-heap-leak', 'heap-limit-thrash', 'semi-space-starvation'],
      report: ['context-leak', 'resource-leak', 'container-limit-mismatch']
    })
  })
  it('name existing fields and diagnoses', () => {
    for (const { fields: own, unsure = {}, cannotExclude = {} } of [
      ...fileSources,
      promClient,
      memwatchMetrics
    ]) {
      expect(own.filter(name => !(name in fields))).toEqual([])
      expect(
        [...Object.keys(unsure), ...Object.keys(cannotExclude)].filter(
          id => id !== '*' && !diagnoses.some(diagnosis => diagnosis.id === id)
        )
      ).toEqual([])
    }
  })
  it('need only fields that its frames contain', async () => {
    const {
      targets: [target]
    } = await judged([path.join(__dirname, '../sources/trace-gc-20-healthy-steady.log.gz')])
    const known = Object.entries(target.values)
      .filter(([name, value]) =>
        value !== undefined && !traceGc.fields.includes(/** @type {any} */ (name)))
    expect(known).toEqual([])
  })
})

describe('sessions of processes', () => {
  const ESCAPE = '\u001b]0;mine\u0007'
  const openLives = async read => {
    const source = /** @type {any} */ ({ ...report, read: async (_, lives) => read(lives) })
    return judgeSource(source, [], {}, { onError: error => { throw error } })
  }
  it('contain plain texts, and omit readings that no agent sends', async () => {
    const { targets: [target], told } = await openLives(lives => {
      const life = lives.open({ name: `a${ESCAPE}`, host: 'b\u202e', execArgv: ['\ud800'] })
      lives.notes.add(`c${ESCAPE}`)
      life.frame(1, { rssBytes: 1 })
      life.frame(2, { rssBytes: 1e308 })
      life.frame(3, { spaces: { [ESCAPE]: [1, 2, 3, 4] } })
    })
    expect([
      target.name,
      target.hello.host,
      target.hello.execArgv,
      target.values,
      target.frame?.uptimeSeconds
    ]).toEqual(['a\ufffd]0;mine\ufffd', 'b\ufffd', ['\ufffd'], { rssBytes: 1 }, 1])
    expect(told.notes).toEqual([
      'c\ufffd]0;mine\ufffd',
      '2 readings were left out: their numbers or names are invalid'
    ])
  })
  it('may follow each other under one process id, as in a container', async () => {
    const { targets } = await openLives(lives => {
      for (const startedAtUnixMs of [1000, 2000, 3000]) {
        lives
          .open({ name: 'app', host: 'pod', pid: 1, startedAtUnixMs })
          .frame(0.5, { rssBytes: 1 })
      }
    })
    expect(targets.map(({ hello }) => hello.startedAtUnixMs)).toEqual([1000, 2000, 3000])
  })
})

describe('a diagnostic report', () => {
  /**
   * Diagnostic reports that a process writes of itself.
   * @param {string} code
   * @param {string[]} [flags]
   */
  async function reportsOf (code, flags = []) {
    const own = fs.mkdtempSync(path.join(folder, 'reports-'))
    const app = path.join(own, 'shop.js')
    fs.writeFileSync(app, code)
    const child = spawn(process.execPath, [...flags, `--report-directory=${own}`, app], {
      env,
      stdio: 'ignore'
    })
    await once(child, 'close')
    return fs
      .readdirSync(own)
      .filter(name => name.startsWith('report.'))
      .map(name => path.join(own, name))
  }
  const twice = (more = '') =>
    `${more}; process.report.writeReport(); setTimeout(() => process.report.writeReport(), 2500)`

  it('of a process contains its identity, its heap and its limits', async () => {
    const {
      targets: [target, ...others],
      told
    } = await judged(
      await reportsOf(
        twice(
          'require("node:vm"); const kept = Array.from({ length: 30 }, () => ' +
            'require("node:vm").createContext({}))'
        ),
        ['--max-old-space-size=300']
      )
    )
    expect(others).toEqual([])
    expect(target.hello).toMatchObject({
      name: 'shop',
      node: process.versions.node,
      v8: process.versions.v8,
      libc: 'glibc',
      threadId: 0
    })
    expect(target.hello.execArgv).toContain('--max-old-space-size=300')
    expect(target.values.heapSizeLimitBytes).toBeGreaterThanOrEqual(300 * MIB)
    expect(target.values.nativeContexts).toBeGreaterThan(30)
    const { new_space: newSpace } = defined(target.values.spaces)
    expect(newSpace[0] + newSpace[2]).toBeGreaterThan(0.9 * MIB)
    expect(target.frame?.sequence).toBe(2)
    expect(told.notes).toEqual([])
  })
  it('of a heap that may outgrow its container is only suspected: it is one moment', async () => {
    const files = await reportsOf(twice(), ['--max-old-space-size=1024'])
    const {
      targets: [target]
    } = await judged(files, { containerLimitBytes: 512 * MIB })
    expect(verdictOf(target, 'container-limit-mismatch')).toMatchObject({
      state: 'suspected',
      summary: expect.stringMatching(/more than the container's 512 MiB/)
    })
    expect(verdictOf(target, 'js-heap-leak').state).toBe('unknown')
    const { stdout } = diagnose(['--memory', '512Mi', ...files])
    expect(stdout).toMatch(/suspected at most: a report shows one moment/)
  })
  it('of a healthy process yields no finding', async () => {
    const { targets: [target] } = await judged(await reportsOf(twice()))
    expect(found(target)).toEqual([])
  })
  it('of a process with a worker has both threads', async () => {
    const { targets } = await judged(
      await reportsOf(
        'const { Worker } = require("node:worker_threads"); const worker = new ' +
          'Worker("setInterval(() => {}, 1000)", { eval: true }); worker.on("online", () => ' +
            'setTimeout(() => { process.report.writeReport(); worker.terminate() }, 300))'
      )
    )
    expect(targets.map(({ thread }) => thread).sort()).toEqual(['main', 'worker-1'])
    expect(targets.find(({ thread }) => thread === 'worker-1')?.values.rssBytes).toBe(undefined)
  })
  it('written because of a full heap reports that', async () => {
    const files = await reportsOf(
      'const kept = []; for (let i = 0; ; i++) kept.push({ i, text: "x" + i })',
      ['--max-old-space-size=30', '--report-on-fatalerror']
    )
    const { told } = await judged(files)
    expect(told.notes).toEqual([expect.stringMatching(/was written because of this event: .*heap/)])
  })
  it('leads to a report that fits the schema', async () => {
    const { status, stdout } = diagnose(['--json', ...await reportsOf(twice())])
    expect(status).toBe(0)
    const validate = new Ajv.Ajv2020({ strict: false }).compile(require('../../docs/report.schema.json'))
    validate(JSON.parse(stdout))
    expect(validate.errors).toBe(null)
  })
  it.each([
    [
      'breaks off',
      '{"header":{"reportVersion":3,',
      /report.json: a diagnostic report that is damaged or incomplete/
    ],
    [
      'has no heap',
      '{"header":{"reportVersion":3,"nodejsVersion":"v20.0.0"}}',
      /report.json: the report has no heap/
    ]
  ])('that %s is refused with the reason', async (_, content, message) => {
    const { status, stderr } = diagnose([write('report.json', content)])
    expect(status).toBe(2)
    expect(stderr).toMatch(message)
  })
  it('is recognized by its content', () => {
    expect(report.accepts('{\n  "header": {\n    "reportVersion": 3')).toBe(true)
    expect(gcProfiler.accepts('{"header":{"reportVersion":3')).toBe(false)
  })
})

describe('a GC profile', () => {
  const profiler = path.join(folder, 'profiler.js')
  const starvingApp = path.join(folder, 'starving.js')
  const steadyApp = path.join(__dirname, '../../lab/apps/healthy-steady.js')
  beforeAll(() => {
    // Each order stays for 300 further ones: too long for a small new space. A GC profile contains
    // no CPU time, so the app allocates all the time: its GCs remain frequent on a busy machine.
    fs.writeFileSync(
      starvingApp,
      `
    const text = JSON.stringify(Array.from({ length: 200 }, (_, id) => [id, [id], {}]))
    const orders = []
    ;(function turn () {
      for (let i = 0; i < 100; i++) {
        orders.push(JSON.parse(text))
        if (orders.length > 300) orders.shift()
      }
      setImmediate(turn)
    })()
    setTimeout(() => process.exit(), 10_000)`
    )
    fs.writeFileSync(
      profiler,
      `
    const { GCProfiler } = require('node:v8')
    const profiler = new GCProfiler()
    profiler.start()
    setTimeout(() => { require('node:fs').writeFileSync(process.env.PROFILE, JSON.stringify(profiler.stop())) }, 9000)`
    )
  })
  /** @param {string} app */
  async function profileOf (app) {
    const file = path.join(folder, `${path.basename(app)}.gctrace.json`)
    const child = spawn(
      process.execPath,
      [
        '--require',
        profiler,
        '--max-semi-space-size=1',
        '--max-old-space-size=256',
        app,
        '--seconds',
        '10'
      ],
      { env: { ...env, PROFILE: file }, stdio: 'ignore' }
    )
    await once(child, 'close')
    return file
  }
  it('of a starving app yields a suspicion, and of a healthy app no finding', async () => {
    const starving = await profileOf(starvingApp)
    const steady = await profileOf(steadyApp)
    const { targets: [target], told } = await judged([starving])
    expect(found(target)).toEqual(['semi-space-starvation suspected'])
    expect(verdictOf(target, 'semi-space-starvation').evidence[0].text).toMatch(
      /at most 1 MiB.*more memory survived than it can hold/
    )
    expect(told.limited.map(({ diagnosis }) => diagnosis)).toEqual([null])
    const profile = JSON.parse(fs.readFileSync(starving, 'utf8'))
    const scavenges = profile.statistics.filter(({ gcType }) => gcType === 'Scavenge')
    const [count, seconds] = defined(target.values.gc)['minor/ordinary']
    expect(count).toBe(scavenges.length)
    expect(seconds).toBeCloseTo(scavenges.reduce((sum, { cost }) => sum + cost, 0) / 1e6, 5)
    expect(found((await judged([steady])).targets[0])).toEqual([])
  }, 60_000)
  it('without a GC is reported as such', async () => {
    const { told } = await judged([
      write('none.json', '{"version":1,"startTime":1000,"statistics":[],"endTime":2000}')
    ])
    expect(told.notes).toEqual([expect.stringMatching(/none.json contains no GC/)])
  })
  it('that is incomplete is refused with the reason', () => {
    const { status, stderr } = diagnose([
      write('cut.json', '{"version":1,"startTime":1000,"statistics":[{"gcType":"Scavenge",')
    ])
    expect(status).toBe(2)
    expect(stderr).toMatch(/cut.json: a GC profile that is damaged or incomplete/)
  })
})

describe('a file that cannot be judged', () => {
  const RECORDING = '{"memwatch":"recording","version":1}\n'
  const repeated = (bytes, count) =>
    Buffer.concat([gzipSync(RECORDING), ...Array(count).fill(gzipSync(bytes))])
  const binary = Buffer.from(Array.from({ length: 4096 }, (_, i) => (i * 7919) % 256))
  it.each([
    ['an object of another kind', '{"command":5}', 'is of an unknown type'],
    ['null', 'null', 'is of an unknown type'],
    ['a list', '[]', 'is of an unknown type'],
    ['a number', '17', 'is of an unknown type'],
    ['a text', '"recording"', 'is of an unknown type'],
    ['nothing', '', 'is empty'],
    ['binary', binary, 'is binary'],
    [
      'a file that only begins like gzip',
      Buffer.concat([Buffer.from([0x1f, 0x8b]), binary]),
      'expected gzip, got a damaged or uncompressed file'
    ],
    [
      'gzip that breaks off at once',
      gzipSync(RECORDING).subarray(0, 10),
      'is cut off before the end of its first line'
    ],
    ['a gzip bomb', gzipSync(Buffer.alloc(300 * MIB)), 'is binary'],
    [
      'a gzip bomb of damaged lines',
      repeated(Buffer.alloc(MIB, 'x\n'), 40),
      'is damaged: more than'
    ],
    [
      'a gzip bomb in a report',
      gzipSync(`{"header":{"reportVersion":3,"x":[${'[],'.repeat(40 * MIB)}`),
      'too large for'
    ],
    [
      'a report with an invalid host name',
      '{"header":{"reportVersion":3,"nodejsVersion":"v20","host":{"toString":1}},"javascriptHeap":{}}',
      'damaged, or not written by Node.js'
    ],
    [
      'a report without a heap',
      '{"header":{"reportVersion":3,"nodejsVersion":"v20"},"javascriptHeap":null}',
      'the report has no heap'
    ],
    [
      'an empty GC profile',
      '{"version":1,"statistics":[{"gcType":null}],"startTime":null}',
      'expected a GC profile with startTime'
    ]
  ])(
    'is reported in one line with the reason: %s',
    (_, content, message) => {
      const file = write('odd', content)
      const { status, stderr, stdout } = diagnose([file])
      expect([status, stdout, stderr.trimEnd().split('\n').length]).toEqual([2, '', 1])
      expect(stderr).toMatch(/^memwatch: /)
      expect(stderr).toContain(file)
      expect(stderr).toContain(message)
    },
    60_000
  )
  it('is named if it is one of two, and two decompression bombs cost no more than one', () => {
    const [one, two] = ['one', 'two'].map(name => write(name, gzipSync(Buffer.alloc(300 * MIB))))
    const { status, stderr } = diagnose([one, two])
    expect([status, stderr.trimEnd().split('\n').length]).toEqual([2, 1])
    expect(stderr).toContain(`${one} is binary`)
  }, 60_000)
  it.each([
    ['a folder', () => folder, 'it is a folder'],
    [
      'a FIFO',
      () => {
        execFileSync('mkfifo', [path.join(folder, 'fifo')])
        return path.join(folder, 'fifo')
      },
      'it is a named pipe'
    ],
    ['a device', () => '/dev/zero', 'it is a device'],
    ['what is not there', () => path.join(folder, 'none'), 'no such file']
  ])('is named if it is %s', (_, make, message) => {
    const file = make()
    const { status, stderr, stdout } = diagnose([file])
    expect([status, stdout, stderr]).toEqual([
      2,
      '',
      `memwatch: cannot read ${file}: ` +
        `${message}${stderr.slice(stderr.indexOf(message) + message.length)}`
    ])
  })
  it('may contain damaged lines, which are counted and skipped', () => {
    const file = write(
      'odd',
      `${RECORDING}null\n5\n[]\n{"end":{"exit":5}}\n{"session":{},"closed":true}\n{"line":null}\n`
    )
    const { status, stderr } = diagnose([file])
    expect([status, stderr]).toEqual([
      0,
      expect.stringMatching(/^memwatch: .*: skipped 5 lines/)
    ])
  })
  it('does not include the pipe of a shell substitution', () => {
    const { stderr } = spawnSync(
      'bash',
      ['-c', `"$0" "$1" diagnose <(echo '${RECORDING.trim()}')`, process.execPath, MEMWATCH],
      { encoding: 'utf8' }
    )
    expect(stderr).toBe('')
  })
})
