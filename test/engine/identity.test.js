'use strict'

const { once } = require('node:events')
const { startExporter, eventually } = require('../support/exporter')
const { Targets } = require('../../engine/history/targets')
const { hello, frame, line, MIB } = require('../support/frames')
const { openSession } = require('../support/open-session')
const { hello: ownHello } = require('../../agent/identity')

const TIB = 2 ** 40
/** This process itself, which the kernel knows. */
const self = { pid: process.pid, startTimeTicks: ownHello({ name: 'x' }).startTimeTicks }

describe('a target whose connection is open', () => {
  let it_
  beforeEach(async () => { it_ = await startExporter() })
  afterEach(() => it_.stop())

  const victimHello = changes =>
    hello({ ...self, name: 'victim', commands: ['capture'], ...changes })
  const refused = reason => it_.exporter.state.rejected.get(reason) ?? 0
  const targets = async () => (await it_.get('/api/v1/targets')).json()

  /** An agent that sends frames. @param {object} [changes] of its hello */
  async function victim (changes) {
    const connection = await it_.connect()
    let sequence = 0
    let said = ''
    connection.setEncoding('utf8').on('data', text => { said += text })
    const next = async () => {
      const frames = it_.exporter.state.frames
      connection.write(
        line(
          frame({ sequence: ++sequence, uptimeSeconds: sequence, values: { rssBytes: 50 * MIB } })
        ) + '\n'
      )
      await eventually(() => it_.exporter.state.frames, count => count > frames)
    }
    connection.write(line(victimHello(changes)) + '\n')
    await next()
    return { connection, next, said: () => said }
  }
  /**
   * Sends messages from another process that has access to the socket.
   * @param {object[]} messages
   */
  async function attack (...messages) {
    const connection = await it_.connect()
    let said = ''
    connection.setEncoding('utf8').on('data', text => { said += text })
    const closed = new Promise(resolve => connection.once('close', resolve))
    connection.write(messages.map(line).join('\n') + '\n')
    return { connection, closed, said: () => said }
  }

  it('cannot be taken over: nobody else changes its memory, counts or state', async () => {
    const { next } = await victim()
    const { closed } = await attack(victimHello(),
      frame({ sequence: 9e15, uptimeSeconds: 9e8, values: { rssBytes: 6 * TIB } }),
      { type: 'bye', sequence: 9e15, atUnixMs: 1, exitCode: 137 })
    await closed
    expect(refused('identity_in_use')).toBe(1)
    await next()
    expect(await targets()).toMatchObject([
      { target: 'victim', up: true, framesLost: 0, values: { rssBytes: 50 * MIB } }
    ])
    expect(refused('out_of_order')).toBe(0)
    expect(await (await it_.get('/api/v1/deaths')).json()).toEqual([])
  })

  it('gets its commands on its own connection', async () => {
    const { connection, said } = await victim()
    const attacker = await attack(victimHello())
    await attacker.closed
    const response = await fetch(
      `${it_.url}/api/v1/targets/victim/captures?kind=cpu_profile&seconds=1`,
      { method: 'POST' }
    )
    expect(response.status).toBe(202)
    await eventually(said, text => text.includes('"command":"capture"'))
    expect(attacker.said()).toBe('')
    connection.destroy()
  })

  it('continues at once on a new connection', async () => {
    const { connection } = await victim()
    connection.destroy()
    await eventually(() => it_.exporter.targets[0].connected, connected => !connected)
    await attack(victimHello(), frame({ sequence: 2, uptimeSeconds: 2 }))
    await eventually(() => it_.exporter.state.frames, frames => frames === 2)
    expect([it_.exporter.targets.length, refused('identity_in_use')]).toEqual([1, 0])
  })

  it('keeps its name when a hello has its pid and another start time', async () => {
    const { connection } = await victim()
    const forged = { startedAtUnixMs: 1, threadId: 0 }
    // Pid and start time are the same, so this is the same process, which has only one main thread.
    await (
      await attack(victimHello(forged))
    ).closed
    expect(refused('identity_in_use')).toBe(1)
    await attack(victimHello({ ...forged, startTimeTicks: 1 }), frame())
    await eventually(
      () => it_.exporter.targets.map(({ name }) => name),
      names => names.length === 2
    )
    expect(it_.exporter.targets.map(({ name, thread }) => `${name} ${thread}`)).toEqual([
      'victim main',
      'victim-2 main'
    ])
    // The kernel shows that it is alive while it is disconnected.
    connection.destroy()
    await eventually(
      () => it_.exporter.targets[0].connected,
      connected => !connected
    )
    await attack(victimHello({ ...forged, startTimeTicks: 2 }), frame())
    await eventually(
      () => it_.exporter.targets.length,
      count => count === 3
    )
    expect(it_.exporter.targets.map(({ name }) => name)).toEqual(['victim', 'victim-2', 'victim-3'])
    expect(await (await it_.get('/api/v1/deaths')).json()).toEqual([])
  })

  it('ignores a forged bye of a living process; that of an invisible process is not certain', async () => {
    const goodbye = { type: 'bye', sequence: 2, atUnixMs: 1, exitCode: 137 }
    await attack(victimHello(), frame(), goodbye)
    await attack(victimHello({ name: 'unseen', startTimeTicks: 1 }), frame(), goodbye)
    const deaths = await eventually(
      async () => (await it_.get('/api/v1/deaths')).json(),
      deaths => deaths.length > 0
    )
    expect(deaths).toMatchObject([{ target: 'unseen', reason: 'error', sure: 'likely' }])
  })

  it('accepts nothing from its connection after a bye', async () => {
    const { closed, connection } = await attack(
      victimHello(),
      frame(),
      { type: 'bye', sequence: 2, atUnixMs: 1, exitCode: 0 },
      ...Array.from({ length: 100 }, (_, i) => frame({ sequence: 3 + i, uptimeSeconds: 3 + i }))
    )
    await closed
    expect([it_.exporter.state.frames, refused('hello_missing')]).toEqual([1, 100])
    connection.destroy()
  })

  it('continues on the next connection after an incomplete one', async () => {
    const first = await attack(victimHello())
    await eventually(() => it_.exporter.targets.length, count => count === 1)
    first.connection.end()
    await once(first.connection, 'close')
    await attack(victimHello(), frame())
    await eventually(() => it_.exporter.state.frames, frames => frames === 1)
  })
})

describe('targets', () => {
  let now
  const make = (sightOf) => {
    now = 1000
    return new Targets({ now: () => now, sightOf })
  }

  it('abandon a silent half-open connection after five intervals, and ignore it afterwards', () => {
    const targets = make()
    const first = openSession(targets, hello(), () => {})
    now += 4999
    expect(targets.open(hello(), () => {})).toBe('identity_in_use')
    first.heard()
    now += 4999
    expect(targets.open(hello(), () => {})).toBe('identity_in_use')
    now += 1
    const second = openSession(targets, hello(), () => {})
    expect(second.frame(frame())).toBeUndefined()
    expect(first.frame(frame({ sequence: 2, uptimeSeconds: 2 }))).toBe('hello_missing')
    first.bye({ exitCode: 137 })
    first.closed(false)
    expect(targets.all).toMatchObject([{ connected: true, exitCode: undefined }])
  })
  it('do not come back if the kernel shows that their process is gone', () => {
    let sight = 'lives'
    const targets = make(() => sight)
    openSession(targets, hello(), () => {}).closed(false)
    sight = 'gone'
    expect(targets.open(hello(), () => {})).toBe('identity_in_use')
    sight = 'lives'
    expect(targets.open(hello(), () => {})).toMatchObject({ target: { connected: true } })
  })
  it('are replaced by another program in the same process: process.execve()', () => {
    const targets = make(() => 'lives')
    const ended = []
    targets.on('end', (target, cause) => ended.push(cause))
    openSession(targets, hello({ startTimeTicks: 7 }), () => {}).closed(false)
    targets.open(hello({ startTimeTicks: 7, startedAtUnixMs: 1_760_000_009_000 }), () => {})
    expect([ended, targets.all.map(({ name }) => name)]).toEqual([['replaced'], ['api']])
  })
  it.each([['main thread', 0], ['worker', 2]])(
    'inherit the name of the previous process if its %s reports first', (_, first) => {
      const targets = make(() => 'gone')
      const open = (pid, threadId) =>
        openSession(targets, hello({ pid, startTimeTicks: pid, threadId }), () => {})
      const before = [open(7, 0), open(7, 1), open(7, 2)]
      for (const session of before) session.closed(false)
      for (const thread of [first, 0, 1, 2].filter((id, i, ids) => ids.indexOf(id) === i)) {
        open(8, thread)
      }
      expect(targets.all.map(({ name, hello }) => [name, hello.pid])).toEqual([
        ['api', 8], ['api', 8], ['api', 8]
      ])
    }
  )
  it('keep the name of a living disconnected process when a namesake starts', () => {
    const targets = make(() => 'lives')
    openSession(targets, hello({ pid: 7, startTimeTicks: 7, threadId: 1 }), () => {}).closed(false)
    openSession(targets, hello({ pid: 8, startTimeTicks: 8 }), () => {})
    expect(targets.all.map(({ name }) => name)).toEqual(['api', 'api-2'])
  })
  it('refuse an impossible leap of sequence or uptime, and accept the next frames', () => {
    const targets = make()
    const session = openSession(targets, hello(), () => {})
    expect(session.frame(frame())).toBeUndefined()
    expect(session.frame(frame({ sequence: 1_000_002, uptimeSeconds: 2 }))).toBe('out_of_order')
    expect(session.frame(frame({ sequence: 2, uptimeSeconds: 604_802 }))).toBe('out_of_order')
    expect(session.frame(frame({ sequence: 1_000_001, uptimeSeconds: 604_801 }))).toBeUndefined()
    expect(targets.all[0].framesLost).toBe(999_999)
  })
  it('have exact sums even if workers report impossibly large numbers', () => {
    const targets = make()
    const main = openSession(targets, hello(), () => {})
    for (let threadId = 1; threadId <= 4; threadId++) {
      openSession(targets, hello({ threadId, startedAtUnixMs: threadId }), () => {})
        .frame(frame({ values: { heapPhysicalBytes: 2 ** 53, externalBytes: 2 ** 53 } }))
    }
    main.frame(frame())
    expect(targets.all[0].workers).toMatchObject({
      count: 4,
      heapBytes: 2 ** 53,
      heapLimitBytes: 0,
      externalBytes: 2 ** 53
    })
  })
  it('share one list of flags, even after many invented lists', () => {
    const targets = make()
    for (let i = 0; i < 100; i++) {
      targets.open(
        hello({ pid: i, name: `other-${i}`, node: String(i), allowedFlags: [`--x-${i}`] }),
        () => {}
      )
    }
    const flags = () => ['--max-old-space-size', '--max-semi-space-size']
    const [a, b] = [200, 201].map(
      pid => openSession(targets, hello({ pid, allowedFlags: flags() }), () => {}).target.hello
    )
    expect(a.allowedFlags).toBe(b.allowedFlags)
  })
})
