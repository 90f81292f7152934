'use strict'

const net = require('node:net')
const { once } = require('node:events')
const { findCase } = require('../../engine/verdicts/case')
const { Load, levels, nextLevel } = require('../../exporter/self-care/load')
const { createMemoryGroup } = require('../../exporter/process/memory-group')
const { spawnExporter, stopExporters } = require('../support/exporter-process')
const { eventually } = require('../support/exporter')
const { hello, frame, line } = require('../support/frames')
const { openSession } = require('../support/open-session')
const { Targets } = require('../../engine/history/targets')
const { itInGroup } = require('../support/memory-groups')

afterEach(stopExporters)

const calm = { memoryRatio: 0, loopRatio: 0 }

/** A target with this finding. @returns {any} */
function judged (verdicts) {
  const target = /** @type {any} */ ({})
  findCase(target).verdicts = verdicts
  return target
}

describe('the level of load', () => {
  it.each([
    [0, { memoryRatio: 0.79 }, 0],
    [0, { memoryRatio: 0.8 }, 1],
    [0, { memoryRatio: 0.879 }, 1],
    [0, { memoryRatio: 0.88 }, 2],
    [0, { memoryRatio: 0.95 }, 3],
    [0, { loopRatio: 0.79 }, 0],
    [0, { loopRatio: 0.8 }, 1],
    [0, { loopRatio: 0.98 }, 3],
    [1, { memoryRatio: 0.76 }, 1],
    [1, { memoryRatio: 0.74 }, 0],
    [3, { memoryRatio: 0.91 }, 3],
    [3, { memoryRatio: 0.5 }, 2],
    [2, { memoryRatio: 0.5, loopRatio: 0.86 }, 2]
  ])('%i under %j becomes %i', (level, load, expected) => {
    expect(nextLevel(level, { ...calm, ...load })).toBe(expected)
  })
  it('drops more from level to level, and nothing on the first', () => {
    levels.slice(1).forEach((level, i) => {
      expect(level.memoryRatio).toBeGreaterThan(levels[i].memoryRatio)
      expect(level.loopRatio).toBeGreaterThan(levels[i].loopRatio)
      expect(level.historyBytes).toBeLessThanOrEqual(levels[i].historyBytes)
    })
    expect(levels[0]).toMatchObject({ frameOf: 1, newTargets: true })
  })
  it('does not rise while the process is stopped', async () => {
    const loads = [new Load({ everyMs: 10 }), new Load({ everyMs: 10_000 })]
    for (const end = performance.now() + 100; performance.now() < end;);
    loads.forEach(load => load.measure())
    expect(loads.map(({ level }) => level)).toEqual([0, 3])
  })
  it('drops no frame of the first targets of a pod, however many follow', () => {
    const load = new Load({
      readMemory: () => ({ rssBytes: 90, limitBytes: 100, heapRatio: 0 }),
      readLoopRatio: () => 0.1
    })
    load.measure()
    const targets = new Targets({ now: Date.now })
    const opened = (pid, uid) =>
      openSession(
        targets,
        hello({ pid, startTimeTicks: pid, name: `app-${pid}`, ...(uid && { pod: { uid } }) })
      ).target
    const own = opened(1)
    const flood = Array.from({ length: 300 }, (_, i) => opened(100 + i))
    const neighbour = opened(2, 'pod-b')
    expect(
      [own, flood[0], flood[14], flood[15], flood[299]].map(target => load.sheds(target, 1, false))
    ).toEqual([false, false, false, true, true])
    expect(load.sheds(neighbour, 1, false)).toBe(false)
    // The exporter has this capacity for 256 pods together.
    const others = new Targets({ now: Date.now })
    const seat = uid =>
      openSession(
        others,
        hello({ pid: 1, startTimeTicks: 1, name: uid, host: uid, pod: { uid } })
      ).target.isSenior
    expect(
      Array.from({ length: 257 }, (_, i) => seat(`pod-${i}`))
        .map(Number)
        .reduce((sum, is) => sum + is)
    ).toBe(256)
  })
  it('drops no frame of a target with a finding', () => {
    const load = new Load({
      readMemory: () => ({ rssBytes: 99, limitBytes: 100, heapRatio: 0 }),
      readLoopRatio: () => 0.1
    })
    expect(load.measure()).toBe(true)
    expect(load.level).toBe(3)
    const target = (state, opportunity = false) => judged([{ state: 'ok' }, { state, opportunity }])
    for (const [of, ill] of /** @type {const} */ ([[target('confirmed'), true], [target('suspected'), true], [target('ok'), false], [target('unknown'), false], [target('confirmed', true), false]])) {
      expect([
        load.sheds(of, 1, false),
        load.sheds(of, 5, false),
        load.evaluateSeconds(of)
      ]).toEqual([!ill, false, ill ? 2 : 30])
    }
  })
  it.each([1, undefined])('follows V8’s heap like the memory limit; RSS is %s', rssBytes => {
    const load = new Load({
      readMemory: () => ({ rssBytes, limitBytes: 100, heapRatio: 0.9 }),
      readLoopRatio: () => 0
    })
    load.measure()
    expect(load.level).toBe(2)
  })
  it('rises after each MiB from agents, and falls only at its timer', () => {
    let heapRatio = 1
    const load = new Load({
      readMemory: () => ({ rssBytes: 1, limitBytes: undefined, heapRatio }),
      readLoopRatio: () => 0
    })
    expect([load.received(2 ** 20 - 1), load.level]).toEqual([false, 0])
    expect([load.received(1), load.level]).toEqual([true, 3])
    heapRatio = 0
    expect([load.received(2 ** 20), load.level]).toEqual([false, 3])
    expect([load.measure(), load.level]).toEqual([true, 2])
  })
  it('refuses, on the last level, a frame that is larger than usual and than the previous one', () => {
    const load = new Load({
      readMemory: () => ({ rssBytes: 1, limitBytes: undefined, heapRatio: 1 }),
      readLoopRatio: () => 0
    })
    const ill = judged([{ state: 'confirmed' }])
    expect(load.sheds(ill, 1, true)).toBe(false)
    load.measure()
    expect([load.sheds(ill, 1, true), load.sheds(ill, 1, false)]).toEqual([true, false])
  })
  it('depends only on the event loop if there is no limit', () => {
    const load = new Load({
      readMemory: () => ({ rssBytes: 1e12, limitBytes: undefined, heapRatio: 0.1 }),
      readLoopRatio: () => 0.1
    })
    load.measure()
    expect(load.level).toBe(0)
  })
})

itInGroup('an exporter near its limit drops and counts frames of healthy targets', async () => {
  const first = await spawnExporter()
  // The first request to the API loads its modules, which take about 10 MiB.
  const loadApi = async url => {
    await (await fetch(`${url}/api/v1/targets`)).json()
  }
  await loadApi(first.url)
  const rss = Number(
    /^memwatch_exporter_resident_memory_bytes (\d+)/m.exec(
      await (await fetch(`${first.url}/metrics`)).text()
    )?.[1]
  )
  await first.stop()
  // A cgroup is not charged for all of RSS: mapped files belong to the page cache.
  const group = createMemoryGroup({ limitBytes: Math.ceil(rss / 0.86), name: 'load' })
  expect([group.supported, group.reason]).toEqual([true, undefined])
  const exporter = await spawnExporter({ wrap: group.wrap })
  await loadApi(exporter.url)
  const metric = async name =>
    Number(
      new RegExp(`^${name} (\\S+)`, 'm').exec(
        await (await fetch(`${exporter.url}/metrics`)).text()
      )?.[1]
    )
  const level = () => metric('memwatch_exporter_load_level')
  /** @type {net.Socket[]} */
  const agents = []
  const connect = pid => {
    const socket = net.connect(exporter.socket)
    socket.on('error', () => {})
    socket.write(line(hello({ pid })) + '\n')
    agents.push(socket)
  }
  let sequence = 0
  const timer = setInterval(() => {
    sequence++
    for (const socket of agents) {
      socket.write(line(frame({ sequence, uptimeSeconds: sequence })) + '\n')
    }
  }, 200)
  try {
    connect(1)
    // The memory at start varies, so agents connect until the limit is near.
    await eventually(
      async () => {
        for (let i = 0; i < 5; i++) connect(agents.length + 1)
        // A text of /metrics is up to one second old: hundreds of agents would connect in this
        // time.
        await new Promise(resolve => setTimeout(resolve, 200))
        return level()
      },
      at => at >= 2,
      60_000
    )
    const taken = await metric('memwatch_exporter_frames_total')
    await eventually(
      () => metric('memwatch_exporter_frames_shed_total'),
      shed => shed > 20,
      30_000
    )
    await eventually(
      () => metric('memwatch_exporter_frames_total'),
      now => now > taken,
      30_000
    )
    const [target] = await (await fetch(`${exporter.url}/api/v1/targets`)).json()
    expect(target.up).toBe(true)
  } finally {
    clearInterval(timer)
    for (const socket of agents) socket.destroy()
    await exporter.stop()
    await group.remove()
  }
}, 90_000)

describe('an exporter whose V8 heap is as small as a sidecar’s', () => {
  /**
   * Connections that an exporter for a whole node accepts from one pod. An earlier version aborted
   * at fewer.
   */
  const CONNECTIONS = 64
  const LONGEST_LINE = 250_000
  /** 64 different keys of the maximum length. */
  const map = (prefix, value) =>
    Object.fromEntries(
      Array.from({ length: 64 }, (_, i) => [`${prefix}.`.padEnd(60, 'k') + i, value])
    )
  const fullest = (pid, sequence) =>
    line(
      frame({
        sequence,
        uptimeSeconds: sequence,
        values: {
          spaces: map(`s${pid}`, Array(4).fill(2 ** 43)),
          gc: Object.fromEntries(
            Array.from({ length: 64 }, (_, i) => [
              `${`g${pid}`.padEnd(30, 'k')}${i}/${'k'.repeat(30)}`,
              [1.1, 1.1, 1.1, Array(14).fill(1.1)]
            ])
          ),
          ...Object.fromEntries(
            ['resources', 'residentBytes', 'allocatorBytes', 'addons'].map(field => [
              field,
              map(`${field[0]}${pid}`, 1.1)
            ])
          )
        }
      })
    )
  const texts = pid => Array.from({ length: 1000 }, (_, i) => `--${pid}-${i}`.padEnd(16, 'x'))
  const junk = sequence => {
    const text = line(frame({ sequence, uptimeSeconds: sequence })).slice(0, -1) + ',"junk":['
    return text + '[],'.repeat((LONGEST_LINE - text.length) / 3) + '[]]}'
  }
  it.each([
    [
      'lines full of unknown fields',
      pid => [line(hello({ pid })), junk(1), junk(2)]
    ],
    [
      'the largest hellos and frames that the contract allows',
      pid => [
        line(
          hello({
            pid,
            execArgv: texts(pid),
            nodeOptions: texts(pid),
            allowedFlags: texts(pid),
            allocatorPath: `/${pid}`.padEnd(4096, 'x')
          })
        ),
        fullest(pid, 1),
        fullest(pid, 2)
      ]
    ],
    [
      'growing frames of known targets',
      pid => [
        line(hello({ pid })),
        line(frame()),
        ...[2, 3].map(sequence => fullest(pid, sequence))
      ]
    ],
    ['unfinished lines', () => ['x'.repeat(LONGEST_LINE)]]
  ])(
    'survives connections that send %s',
    async (name, linesOf) => {
      const exporter = await spawnExporter({ nodeArgs: ['--max-old-space-size=64'] })
      const agents = []
      const connect = async () => {
        const socket = net.connect(exporter.socket)
        socket.on('error', () => {}).resume()
        await once(socket, 'connect')
        agents.push(socket)
        return socket
      }
      const good = await connect()
      good.write(line(hello({ pid: 1, name: 'good' })) + '\n' + line(frame()) + '\n')
      for (let pid = 2; pid < 2 + CONNECTIONS; pid++) {
        const text = linesOf(pid).join('\n') + (name === 'unfinished lines' ? '' : '\n')
        const socket = await connect()
        // Resolves once all data is written, or the exporter hangs up.
        await new Promise(resolve => {
          socket.once('close', resolve).write(text, resolve)
        })
      }
      good.write(line(frame({ sequence: 2, uptimeSeconds: 2, atUnixMs: 7 })) + '\n')
      const found = await eventually(
        async () => await (await fetch(`${exporter.url}/api/v1/targets?target=good`)).json(),
        ([target]) => target?.lastFrameUnixMs === 7
      )
      expect([found[0].up, exporter.child.exitCode, exporter.child.signalCode]).toEqual([
        true,
        null,
        null
      ])
      for (const agent of agents) agent.destroy()
    },
    60_000
  )
})
