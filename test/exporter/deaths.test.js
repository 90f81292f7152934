'use strict'

const { advise } = require('../../exporter/deaths/advise')
const { explainDeath } = require('../../exporter/deaths/explain')
const { explainExit } = require('../../exporter/deaths/explain-exit')
const { reasons } = require('../../exporter/deaths/reasons')
const { Witness } = require('../../exporter/process/witness')
const { DeathWatch } = require('../../exporter/deaths/death-watch')
const { Deaths, MAX_DEATHS } = require('../../exporter/deaths/deaths')
const { Targets } = require('../../engine/history/targets')
const { hello, frame, gcRow, MIB } = require('../support/frames')
const { openSession } = require('../support/open-session')

/** Last frame of a calm process, half a second before its end. */
const moments = (changes = {}) => ({
  silentSeconds: 0.5,
  intervalSeconds: 1,
  rssBytes: 100 * MIB,
  rssGrowthBytesPerSecond: 0,
  rssRecordBytes: 0,
  containerBytes: 100 * MIB,
  containerLimitBytes: 512 * MIB,
  limitHitsRose: false,
  heapUsedBytes: 40 * MIB,
  heapGrowthBytesPerSecond: 0,
  heapRecordBytes: 0,
  heapSizeLimitBytes: 304 * MIB,
  oldBytes: 40 * MIB,
  oldLimitBytes: 256 * MIB,
  heapRise: null,
  gcPauseRatio: 0.01,
  ...changes
})
const full = { containerBytes: 470 * MIB, rssBytes: 470 * MIB }
const heapFull = { heapUsedBytes: 260 * MIB, oldBytes: 250 * MIB, gcPauseRatio: 0.6 }
const signal = name => ({ code: null, signal: name })
/** 5 MiB/s, shown by five major GCs. */
const heapRise = (liveBytesPerSecond = 5 * MIB) => ({
  fromBytes: 100 * MIB, toBytes: 200 * MIB, seconds: 20, readings: 5, falls: 0, liveBytesPerSecond
})

describe('the explanation of a process that ran out of heap', () => {
  const rise = (changes = {}) => ({
    fromBytes: 20 * MIB,
    toBytes: 250 * MIB,
    seconds: 23,
    readings: 6,
    falls: 0,
    liveBytesPerSecond: 10 * MIB,
    ...changes
  })
  it.each([
    [
      'names growth to the limit, and both possible causes',
      { heapRise: rise() },
      /grew from 20 MiB to 250 MiB in its last 23 s, by 10 MiB\/s, and more memory was in use after each of 6 major GCs.*js-heap-leak.*more than the limit of 304 MiB/
    ],
    [
      'says that the heap fell in between',
      { heapRise: rise({ falls: 2 }) },
      /fell after 2 of 6 major GCs/
    ],
    [
      'draws no line through two readings',
      { heapRise: rise({ readings: 2 }) },
      /by 10 MiB\/s\. So either/
    ],
    [
      'says that no growth was seen',
      { heapRise: rise({ fromBytes: 201 * MIB }) },
      /^No growth was visible.*all at once/
    ],
    ['says so even without a frame', {}, /^No growth was visible/],
    [
      'names a limit that fits the container',
      { heapRise: rise() },
      /the container of 512 MiB has room for --max-old-space-size=384\./
    ],
    [
      'names no limit if the container has no room',
      { heapRise: rise(), containerLimitBytes: 420 * MIB },
      /this one of 420 MiB has no room/
    ],
    [
      'names a limit without a container',
      { heapRise: rise(), containerLimitBytes: undefined },
      /--max-old-space-size=608\./
    ],
    ['names the next step', {}, /--heapsnapshot-near-heap-limit=1.*--report-on-fatalerror/]
  ])('%s', (_, changes, text) => {
    expect(advise('heap_oom', moments(changes))).toMatch(text)
    expect(advise('heap_oom', moments(changes))).not.toMatch(/NaN|undefined|Infinity/)
  })
  it('is undefined for other deaths', () => {
    for (const reason of /** @type {(keyof typeof reasons)[]} */ (Object.keys(reasons))) {
      if (reason !== 'heap_oom') expect(advise(reason, moments())).toBeNull()
    }
  })
})

describe('the end of a command that never reported', () => {
  const rss = (...mib) => mib.map((of, i) => ({ atSeconds: 0.1 + i, rssBytes: of * MIB }))
  it.each([
    [
      'SIGABRT after growth',
      { exit: signal('SIGABRT'), rss: rss(40, 150, 240) },
      'heap_oom',
      'likely',
      /rose from 40 MiB to 240 MiB, by 100 MiB\/s.*heap is full/
    ],
    [
      'SIGABRT after growth of a little less',
      { exit: signal('SIGABRT'), rss: rss(40, 103) },
      'heap_oom',
      'possible',
      /RSS was 103 MiB/
    ],
    [
      'SIGABRT that nobody watched',
      { exit: signal('SIGABRT') },
      'heap_oom',
      'possible',
      /^The command ended with SIGABRT after 2 s/
    ],
    [
      'the exit status by which a shell reports it',
      { exit: { code: 134, signal: null }, rss: rss(2, 90) },
      'heap_oom',
      'possible',
      /SIGABRT \(exit status 134\)(?!.*RSS)/
    ],
    [
      'SIGKILL with a kill in its cgroup',
      { exit: signal('SIGKILL'), oomKills: 1 },
      'oom_kill',
      'certain',
      /The kernel killed a process of its cgroup for memory/
    ],
    [
      'SIGKILL without',
      { exit: signal('SIGKILL'), oomKills: 0 },
      'killed',
      'possible',
      /counted no kill/
    ],
    ['137, uncounted', { exit: { code: 137, signal: null } }, 'killed', 'possible', /dmesg/],
    ['SIGSEGV', { exit: signal('SIGSEGV') }, 'crash', 'certain', /Native code crashes like this/],
    ['139', { exit: { code: 139, signal: null } }, 'crash', 'certain', /SIGSEGV/],
    ['SIGTERM of somebody else', { exit: signal('SIGTERM') }, 'killed', 'certain', /SIGTERM/]
  ])('%s', (_, known, reason, sure, text) => {
    const ending = explainExit({ durationSeconds: 2, ...known })
    expect(ending).toMatchObject({ reason, sure, text: expect.stringMatching(text) })
  })
  it.each([0, 1, 3, 128, 255])('exit status %i does not stand for a signal', code => {
    expect(explainExit({ exit: { code, signal: null }, durationSeconds: 2 })).toBeNull()
  })
})

describe('the reason of a death', () => {
  /**
   * @typedef {Omit<Partial<Parameters<typeof explainDeath>[0]>, 'moments'> &
   *   { moments?: object }} Evidence
   * @type {[title: string, evidence: Evidence, reason: string, sure: string][]}
   */
  const ENDS = [
    ['a goodbye with 0', { byeCode: 0, isGone: true }, 'clean', 'certain'],
    [
      'a bye with 143, as after a SIGTERM handler',
      { byeCode: 143, isGone: true },
      'clean',
      'certain'
    ],
    ['a goodbye with 1', { byeCode: 1, isGone: true }, 'error', 'certain'],
    ['a bye that the kernel cannot confirm', { byeCode: 1 }, 'error', 'likely'],
    [
      'a bye with 0, and a signal by the kernel',
      { byeCode: 0, exit: signal('SIGSEGV') },
      'crash',
      'certain'
    ],
    [
      'a bye with 137, and another exit code by the kernel',
      { byeCode: 137, exit: { code: 3, signal: null } },
      'error',
      'certain'
    ],
    ['an exit code from the parent', { exit: { code: 3, signal: null } }, 'error', 'certain'],
    ['SIGSEGV', { exit: signal('SIGSEGV') }, 'crash', 'certain'],
    ['SIGABRT far from the limit', { exit: signal('SIGABRT') }, 'crash', 'certain'],
    [
      'SIGABRT with the heap full',
      { exit: signal('SIGABRT'), moments: heapFull },
      'heap_oom',
      'certain'
    ],
    [
      'SIGABRT after RSS grew by the room of the heap, without a frame',
      { exit: signal('SIGABRT'), moments: { silentSeconds: 3 }, silentGrowthBytes: 120 * MIB },
      'heap_oom',
      'likely'
    ],
    [
      'a late SIGABRT after RSS rose by a little of the heap’s room',
      { exit: signal('SIGABRT'), moments: { silentSeconds: 1.6 }, silentGrowthBytes: 9 * MIB },
      'heap_oom',
      'possible'
    ],
    [
      'SIGABRT after silence with constant RSS',
      { exit: signal('SIGABRT'), moments: { silentSeconds: 3 }, silentGrowthBytes: 0 },
      'crash',
      'certain'
    ],
    ['SIGTERM', { exit: signal('SIGTERM') }, 'killed', 'certain'],
    [
      'SIGKILL with an OOM kill in the kernel’s count',
      { exit: signal('SIGKILL'), oomKills: 1 },
      'oom_kill',
      'certain'
    ],
    [
      'SIGKILL with full memory, but no OOM kill in the kernel’s count',
      { exit: signal('SIGKILL'), oomKills: 0, moments: full },
      'killed',
      'certain'
    ],
    [
      'SIGKILL with full memory and an unreadable count',
      { exit: signal('SIGKILL'), moments: full },
      'oom_kill',
      'likely'
    ],
    [
      'SIGABRT with the heap at seven tenths of its limit',
      { exit: signal('SIGABRT'), moments: { oldBytes: 71 * MIB, oldLimitBytes: 100 * MIB } },
      'heap_oom',
      'likely'
    ],
    [
      'SIGABRT with the heap below that',
      { exit: signal('SIGABRT'), moments: { oldBytes: 69 * MIB, oldLimitBytes: 100 * MIB } },
      'crash',
      'certain'
    ],
    [
      'SIGABRT while another process of its cgroup was killed',
      { exit: signal('SIGABRT'), oomKills: 1, moments: heapFull },
      'heap_oom',
      'certain'
    ],
    ['only the kernel’s count', { oomKills: 1 }, 'oom_kill', 'certain'],
    [
      'only a count reported by others of its cgroup',
      { saidOomKills: 1 },
      'oom_kill',
      'likely'
    ],
    ['nothing, memory full', { moments: full }, 'oom_kill', 'likely'],
    [
      'no signal, memory at 0.89 of the limit',
      { moments: { containerBytes: 0.89 * 512 * MIB } },
      'signal',
      'possible'
    ],
    [
      'no signal, memory that would have been full a second later',
      { moments: { rssGrowthBytesPerSecond: 300 * MIB } },
      'oom_kill',
      'likely'
    ],
    ['nothing, heap full', { moments: heapFull }, 'heap_oom', 'likely'],
    [
      'no signal, both full, and GCs took most of the time',
      { moments: { ...full, ...heapFull } },
      'heap_oom',
      'likely'
    ],
    [
      'no signal, both full, GCs took little: the heap was nearer',
      { moments: { ...full, ...heapFull, gcPauseRatio: 0.1 } },
      'heap_oom',
      'likely'
    ],
    [
      'no signal, both full, GCs took little: the container was nearer',
      { moments: { ...full, containerBytes: 510 * MIB, ...heapFull, gcPauseRatio: 0.1 } },
      'oom_kill',
      'likely'
    ],
    [
      'no signal, the heap above its maximum by a tenth of its limit',
      { moments: { heapRecordBytes: 26 * MIB } },
      'heap_oom',
      'possible'
    ],
    [
      'no signal, the heap above its maximum by less',
      { moments: { heapRecordBytes: 25 * MIB } },
      'signal',
      'possible'
    ],
    [
      'no signal, RSS above its maximum by a tenth of the limit',
      { moments: { rssRecordBytes: 52 * MIB } },
      'oom_kill',
      'possible'
    ],
    [
      'no signal, RSS and the heap above their maximum',
      { moments: { rssRecordBytes: 52 * MIB, heapRecordBytes: 26 * MIB } },
      'heap_oom',
      'possible'
    ],
    [
      'SIGABRT, the heap above its maximum by a thirtieth of its limit',
      { exit: signal('SIGABRT'), moments: { heapRecordBytes: 9 * MIB } },
      'heap_oom',
      'possible'
    ],
    [
      'no signal, a live heap that would have been full within ten seconds',
      { moments: { oldBytes: 205 * MIB, heapRise: heapRise() } },
      'heap_oom',
      'possible'
    ],
    [
      'no signal, the same memory without steady growth',
      { moments: { oldBytes: 205 * MIB, heapRise: heapRise(0) } },
      'signal',
      'possible'
    ],
    [
      'no signal, the same growth before a long silence with constant RSS',
      {
        moments: { oldBytes: 205 * MIB, heapRise: heapRise(), silentSeconds: 12 },
        silentGrowthBytes: 0
      },
      'hung',
      'likely'
    ],
    [
      'no signal, the same growth with more room',
      { moments: { oldBytes: 190 * MIB, heapRise: heapRise() } },
      'signal',
      'possible'
    ],
    ['no signal after 20 s of silence', { moments: { silentSeconds: 20 } }, 'hung', 'likely'],
    [
      'no signal after 5 s of unobserved silence',
      { moments: { silentSeconds: 5 } },
      'heap_oom',
      'possible'
    ],
    ['nothing after 3 s', { moments: { silentSeconds: 3 } }, 'heap_oom', 'possible'],
    ['no signal after a little less', { moments: { silentSeconds: 2.99 } }, 'signal', 'possible'],
    ['nothing, calm', {}, 'signal', 'possible'],
    ['no signal, calm, no OOM kill', { oomKills: 0 }, 'signal', 'likely'],
    [
      'its connection timed out',
      { unreachable: true, moments: { silentSeconds: 40 } },
      'lost',
      'likely'
    ],
    ['an end while the exporter was away', { unwatched: 'unknown' }, 'unknown', 'likely'],
    [
      'an end while the exporter was away, by the kernel',
      { unwatched: 'unknown', isGone: true },
      'unknown',
      'certain'
    ],
    ['it was replaced meanwhile', { unwatched: 'restarted' }, 'restarted', 'likely'],
    [
      'no known memory',
      {
        moments: {
          rssBytes: undefined,
          containerBytes: undefined,
          heapUsedBytes: undefined,
          oldBytes: undefined
        }
      },
      'signal',
      'possible'
    ]
  ]
  it.each(ENDS)('%s', (_, { moments: changes, ...evidence }, reason, sure) => {
    const explained = explainDeath({ moments: moments(changes), ...evidence })
    expect(explained).toMatchObject({ reason, sure })
    expect(explained.text).not.toMatch(/undefined|NaN/)
  })
  it('an OOM kill is never called a clean exit', () => {
    for (const exit of [undefined, signal('SIGKILL')]) {
      for (const changes of [{}, full, heapFull, { silentSeconds: 100 }]) {
        expect(explainDeath({ moments: moments(changes), exit, oomKills: 1 }).reason).toBe(
          'oom_kill'
        )
      }
    }
  })
})

describe('the process probe', () => {
  /** /proc of one process. The name is as hostile as the kernel allows. @param {object} [stat] */
  const proc = ({ state = 'S', start = 777, code = 0 } = {}) => {
    const fields = Array(50).fill('0')
    Object.assign(fields, { 0: state, 11: '150', 12: '50', 19: String(start), 49: String(code) })
    /** @type {Record<string, string>} */
    const files = {
      '/proc/9/stat': `9 (a) S 1) ${fields.join(' ')}\n`,
      '/proc/9/status': 'Name:\tnode\nVmRSS:\t   2048 kB\n',
      '/proc/9/cgroup': '4:memory:/pods/x\n',
      '/proc/self/mountinfo': '36 35 0:1 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n',
      '/sys/fs/cgroup/memory/pods/x/memory.oom_control':
        'oom_kill_disable 0\nunder_oom 0\noom_kill 3\n'
    }
    return { files, read: file => files[file] ?? (() => { throw new Error('ENOENT') })() }
  }
  const who = { pid: 9, startTimeTicks: 777 }

  it.each([
    ['S', 'sleeping'],
    ['R', 'running'],
    ['T', 'stopped'],
    ['Z', 'gone'],
    ['X', 'gone']
  ])('%s is %s', (state, expected) => {
    expect(new Witness(who, proc({ state })).look()).toMatchObject({
      state: expected,
      cpuSeconds: 2
    })
  })
  it.each([
    [139, { code: null, signal: 'SIGSEGV' }],
    [9, { code: null, signal: 'SIGKILL' }],
    [0x300, { code: 3, signal: null }],
    [0, undefined]
  ])('wait status %i of a zombie', (code, exit) => {
    expect(new Witness(who, proc({ state: 'Z', code })).look().exit).toEqual(exit)
  })
  it('a process with the same id and another start time is another one', () => {
    expect(new Witness(who, proc({ start: 778 })).look().state).toBe('gone')
    expect(Witness.of(hello(who), proc({ start: 778 }))).toBeNull()
    expect(Witness.of(hello({ pid: 9 }), proc())).toBeNull()
  })
  it('counts OOM kills in the process’s own cgroup, and never in a parent', () => {
    expect(new Witness(who, proc()).oomKills()).toBe(3)
    const hidden = proc()
    hidden.files['/sys/fs/cgroup/memory/memory.oom_control'] = 'oom_kill 9\n'
    delete hidden.files['/sys/fs/cgroup/memory/pods/x/memory.oom_control']
    expect(new Witness(who, hidden).oomKills()).toBeUndefined()
  })
  it('an exporter without free descriptors declares no process dead', () => {
    const { read } = proc()
    let code
    const witness = new Witness(who, {
      read: file => {
        if (code) throw Object.assign(new Error(code), { code })
        return read(file)
      }
    })
    code = 'EMFILE'
    expect(witness.look().state).toBe('sleeping')
    code = 'ENOENT'
    expect(witness.look().state).toBe('gone')
  })
  it('sees itself', () => {
    const { startTimeTicks } = require('../../agent/identity').hello({ name: 'x' })
    const witness = /** @type {Witness} */ (Witness.of(hello({ pid: process.pid, startTimeTicks })))
    expect(witness.look().state).toBe('running')
    expect(witness.rssBytes()).toBeGreaterThan(20 * MIB)
  })
})

describe('the death watch', () => {
  let now
  /** @param {() => any} [witnessOf] doubles of Witness */
  const make = (witnessOf = () => null) => {
    now = 1_760_000_000_000
    const targets = new Targets({ now: () => now })
    const watch = new DeathWatch(targets, { now: () => now, witnessOf })
    const deaths = []
    watch.on('death', death => deaths.push(death))
    /** Advances the time second by second, and polls. */
    const pass = seconds => {
      for (let i = 0; i < seconds; i++) {
        now += 1000
        watch.look()
      }
    }
    watch.look()
    return { targets, watch, deaths, pass }
  }
  const open = (targets, changes = {}) => {
    const session = openSession(targets, hello(changes), () => {})
    session.frame(frame({ values: { rssBytes: 100 * MIB } }))
    return session
  }

  it('a target that reconnects within five seconds is not dead', () => {
    const { targets, deaths, pass } = make()
    open(targets).closed(false)
    pass(4)
    open(targets).frame(frame({ sequence: 2, uptimeSeconds: 6 }))
    pass(20)
    expect(deaths).toEqual([])
  })
  it('a target that reconnects later is alive again, and can die later', () => {
    const { targets, watch, deaths, pass } = make()
    const alive = []
    watch.on('alive', id => alive.push(id))
    open(targets).closed(true)
    pass(10)
    expect(deaths).toMatchObject([{ reason: 'lost' }])
    const session = open(targets)
    session.frame(frame({ sequence: 2, uptimeSeconds: 20 }))
    expect(alive).toEqual([deaths[0].id])
    pass(10)
    session.bye({ exitCode: 3 })
    expect(deaths.slice(1)).toMatchObject([{ reason: 'error' }])
  })
  it('a target that does not reconnect dies once, at the end of its connection', () => {
    const { targets, deaths, pass } = make()
    open(targets).closed(false)
    pass(400)
    targets.expire()
    expect(deaths).toMatchObject([
      { target: 'api', reason: 'signal', diedAtUnixMs: 1_760_000_000_000 }
    ])
  })
  it('the next process of the app ends the wait', () => {
    const { targets, deaths } = make()
    open(targets, { pid: 1 }).closed(false)
    open(targets, { pid: 2 })
    expect(deaths).toMatchObject([{ pid: 1 }])
  })
  it('a bye decides the cause of an end', () => {
    const { targets, deaths, pass } = make()
    const session = open(targets)
    session.bye({ exitCode: 0 })
    session.closed(false)
    pass(10)
    expect(deaths).toMatchObject([{ reason: 'clean', exitCode: 0 }])
  })
  describe('after a bye', () => {
    /** State of a process in the kernel, which the test changes. */
    const process = () => ({
      state: 'sleeping',
      look () {
        return { state: this.state, cpuSeconds: 0 }
      },
      oomKills: () => undefined,
      rssBytes: () => undefined
    })
    const lives = watch => {
      const seen = []
      watch.on('lives', target => seen.push(target.name))
      return seen
    }
    it('a death is certain once the kernel shows that the process is gone', () => {
      const witness = process()
      const { targets, deaths, pass } = make(() => witness)
      open(targets).bye({ exitCode: 3 })
      pass(5)
      expect(deaths).toEqual([])
      witness.state = 'gone'
      pass(1)
      expect(deaths).toMatchObject([
        { reason: 'error', sure: 'certain', exitCode: 3, diedAtUnixMs: 1_760_000_000_000 }
      ])
    })
    it('a living process did not die, and the death is retracted', () => {
      const { targets, watch, deaths, pass } = make(process)
      const seen = lives(watch)
      open(targets).bye({ exitCode: 137 })
      pass(31)
      expect([deaths, seen]).toEqual([[], ['api']])
    })
    it('a process that sends another hello did not die', async () => {
      const witness = process()
      const { targets, watch, deaths, pass } = make(() => witness)
      const seen = lives(watch)
      open(targets).bye({ exitCode: 137 })
      open(targets)
      await watch.settled()
      witness.state = 'gone'
      pass(3)
      expect([deaths, seen]).toEqual([[], ['api']])
    })
    it('at most 64 deaths wait for the kernel, and others are reported as likely', () => {
      const { targets, deaths } = make(process)
      for (let pid = 1; pid <= 65; pid++) {
        open(targets, { pid, startTimeTicks: pid }).bye({ exitCode: 137 })
      }
      expect(deaths).toMatchObject([{ pid: 65, reason: 'error', sure: 'likely' }])
    })
    it('a stopping exporter reports the deaths that wait for the kernel', () => {
      const { targets, watch, deaths } = make(process)
      open(targets).bye({ exitCode: 3 })
      watch.stop()
      expect(deaths).toMatchObject([{ reason: 'error', sure: 'likely' }])
    })
  })
  it('accepts the status from the parent, before and after the end of the connection', () => {
    for (const first of ['told', 'closed']) {
      const { targets, watch, deaths } = make(() => ({
        look: () => ({ state: 'gone', cpuSeconds: 0 }),
        oomKills: () => undefined,
        rssBytes: () => undefined
      }))
      watch.expectExit(4711)
      const session = open(targets)
      if (first === 'told') watch.exited(4711, signal('SIGSEGV'))
      session.closed(false)
      if (first === 'closed') watch.exited(4711, signal('SIGSEGV'))
      expect(deaths).toMatchObject([{ reason: 'crash', signal: 'SIGSEGV' }])
    }
  })
  it('the end of a worker is normal unless its heap was full', () => {
    const { targets, deaths, pass } = make()
    const main = open(targets)
    open(targets, { threadId: 1, startedAtUnixMs: 1 }).closed(false)
    const full = openSession(targets, hello({ threadId: 2, startedAtUnixMs: 2 }), () => {})
    full.frame(
      frame({
        values: {
          heapUsedBytes: 95 * MIB,
          heapSizeLimitBytes: 100 * MIB,
          gc: { 'major/ordinary': gcRow(1, 1) }
        }
      })
    )
    full.closed(false)
    let sequence = 1
    for (let i = 0; i < 10; i++) {
      main.frame(frame({ sequence: ++sequence, uptimeSeconds: sequence }))
      pass(1)
    }
    // The new worker replaced the ended one.
    expect(deaths).toMatchObject([{ thread: 'worker-1', reason: 'heap_oom' }])
  })
  it('a stopping exporter declares no process dead', () => {
    const { targets, watch, deaths, pass } = make()
    const session = open(targets)
    watch.stop()
    session.closed(false)
    pass(10)
    expect(deaths).toEqual([])
  })
  it('a living, disconnected process is not dead after five minutes either', () => {
    const { targets, watch, deaths, pass } = make(() => ({
      look: () => ({ state: 'sleeping', cpuSeconds: 0 }),
      oomKills: () => 0,
      rssBytes: () => 0
    }))
    open(targets).closed(false)
    pass(2)
    expect(watch.silenceOf(targets.all[0])).toBe('connection_lost')
    pass(301)
    targets.expire()
    expect(targets.all).toEqual([])
    expect(deaths).toEqual([])
  })
  it.each([
    ['loop_blocked', 'running', 1],
    ['waiting', 'sleeping', 0],
    ['stopped', 'stopped', 0]
  ])('silence: %s', (cause, state, cpuPerLook) => {
    let cpuSeconds = 0
    const { targets, watch, pass } = make(() => ({
      look: () => {
        cpuSeconds += cpuPerLook
        return { state, cpuSeconds }
      },
      oomKills: () => 0,
      rssBytes: () => 0
    }))
    const session = open(targets)
    pass(3)
    expect(watch.silenceOf(targets.all[0])).toBeUndefined()
    pass(3)
    expect(watch.silenceOf(targets.all[0])).toBe(cause)
    session.frame(frame({ sequence: 2, uptimeSeconds: 8 }))
    expect(watch.silenceOf(targets.all[0])).toBeUndefined()
  })
  it('a delayed exporter reads its sockets before it calls a target silent', () => {
    const { targets, watch } = make()
    open(targets)
    now += 60_000
    watch.look()
    expect(watch.silenceOf(targets.all[0])).toBeUndefined()
    now += 1000
    watch.look()
    expect(watch.silenceOf(targets.all[0])).toBe('unknown')
  })
})

describe('a leak that fills the heap within seconds', () => {
  it('is named with its growth, even without a verdict', () => {
    let now = 1_760_000_000_000
    const targets = new Targets({ now: () => now })
    const watch = new DeathWatch(targets, { now: () => now, witnessOf: () => null })
    const deaths = []
    watch.on('death', death => deaths.push(death))
    const session = openSession(targets, hello(), () => {})
    for (let second = 1; second <= 17; second++) {
      now += 1000
      const used = (10 + 14 * second) * MIB
      session.frame(
        frame({
          sequence: second,
          uptimeSeconds: second,
          values: {
            rssBytes: used + 60 * MIB,
            heapUsedBytes: used,
            heapSizeLimitBytes: 259 * MIB,
            containerLimitBytes: 512 * MIB,
            containerUsageBytes: used + 60 * MIB,
            ...(second % 4 === 0 && { liveHeapBytes: used, liveHeapMajors: second / 4 })
          }
        })
      )
    }
    session.closed(false)
    watch.exited(4711, signal('SIGABRT'))
    expect(deaths).toMatchObject([
      {
        reason: 'heap_oom',
        verdict: null,
        advice: expect.stringMatching(
          /grew from .* by 14 MiB\/s, and more memory was in use after each of 4 major GCs/
        )
      }
    ])
  })
})

describe('stored deaths', () => {
  const death = (changes = {}) => /** @type {any} */ ({ id: '1', target: 'api', thread: 'main', reason: 'oom_kill', ...changes })
  const minutes = { secondsBefore: [1, 0], tracks: { rssBytes: [1, null] } }

  it('are the newest hundred, with the minutes before each', () => {
    const deaths = new Deaths()
    for (let i = 0; i <= MAX_DEATHS; i++) deaths.add(death({ id: String(i) }), minutes)
    expect(deaths.all).toHaveLength(MAX_DEATHS)
    expect(deaths.all[0].id).toBe(String(MAX_DEATHS))
    expect(deaths.find('0')).toBeUndefined()
    expect(deaths.find('1')).toEqual({ death: death({ id: '1' }), lastMinutes: minutes })
  })
  it('are counted from zero for a new target, and continue for a returning one', () => {
    const deaths = new Deaths()
    const live = [{ name: 'api', thread: 'main' }, { name: 'api', thread: 'worker-1' }]
    const counts = () =>
      Object.fromEntries(
        deaths.exits(live).map(({ target, reason, count }) => [`${target} ${reason}`, count])
      )
    expect(counts()).toEqual(
      Object.fromEntries(
        Object.entries(reasons)
          .filter(([, { counted }]) => counted)
          .map(([reason]) => [`api ${reason}`, 0])
      )
    )
    deaths.add(death(), minutes)
    deaths.add(death({ id: '2' }), minutes)
    expect(counts()['api oom_kill']).toBe(2)
    expect(deaths.lastOfEach).toMatchObject([{ id: '2' }])
  })
  it('that turn out to be wrong are retracted, but stay counted', () => {
    const deaths = new Deaths()
    deaths.add(death(), minutes)
    deaths.retract('1')
    expect([deaths.all, deaths.lastOfEach]).toEqual([[], []])
    expect(deaths.exits([])).toMatchObject([
      { reason: 'oom_kill', count: 1 },
      ...Array(5).fill({ count: 0 })
    ])
  })
  it('are counted under at most a thousand names', () => {
    const deaths = new Deaths()
    for (let i = 0; i <= 1000; i++) {
      deaths.add(death({ id: String(i), target: `api-${i}` }), minutes)
    }
    expect(deaths.lastOfEach).toHaveLength(1000)
    expect(deaths.lastOfEach[0].target).toBe('api-1')
  })
})
