'use strict'

const fs = require('node:fs')
const http = require('node:http')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { once } = require('node:events')
const { computeProof } = require('../../agent/protocol/proof')
const { Transport } = require('../../agent/transport')
const { attacks } = require('../support/impostor-process')
const { NODES, spawnBounded, spawnWatched, versionOf } = require('../support/agent-collector')

const IMPOSTOR = require.resolve('../support/impostor-process')
const APP = require.resolve('../support/measured-app')

/** Folder of trusted sockets, and a shared volume that all users can write to. */
const PRIVATE = 0o700
const SHARED = 0o777
jest.setTimeout(120_000)
const QUICK = { MEMWATCH_INTERVAL_SECONDS: '0.1', MEMWATCH_ALLOCATOR_ACCESS: 'trim' }

/**
 * Functions that undo the set-up, called in reverse order after each test.
 * @type {(() => unknown)[]}
 */
let undo = []
afterEach(async () => {
  for (const step of undo.reverse()) await step()
  undo = []
})

/**
 * @param {number} mode
 * @returns {string} a new folder
 */
function makeFolder (mode) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-socket-'))
  fs.chmodSync(folder, mode)
  undo.push(() => fs.rmSync(folder, { recursive: true, force: true }))
  return folder
}

/**
 * @template {{ child: import('node:child_process').ChildProcess, ended: Promise<any> }} T
 * @param {T} spawned
 * @returns {T}
 */
function endAfter (spawned) {
  undo.push(() => {
    spawned.child.kill('SIGKILL')
    return spawned.ended
  })
  return spawned
}

/** @param {number} ms */
const wait = ms => new Promise(resolve => setTimeout(resolve, ms))

/**
 * @param {() => unknown} ask
 * @param {number} [timeoutMs] longer than the agent's longest wait between two connections, which
 *   it reaches after failed attempts on a busy machine
 */
async function until (ask, timeoutMs = 45_000) {
  for (const end = Date.now() + timeoutMs; !ask(); await wait(10)) {
    if (Date.now() > end) throw new Error(`not in ${timeoutMs} ms: ${ask}`)
  }
}

/**
 * An exporter that sends what the test writes; it records connections and their messages.
 * @param {string} folder
 */
async function listen (folder) {
  const file = path.join(folder, 'exporter.sock')
  /**
   * @type {{ socket: net.Socket, messages: any[], of: (type: string) => any[],
   *   isClosed: boolean, acceptedMs: number }[]}
   */
  const connections = []
  const server = net.createServer(socket => {
    let rest = ''
    const messages = []
    const of = type => messages.filter(message => message.type === type)
    const connection = { socket, messages, of, isClosed: false, acceptedMs: performance.now() }
    connections.push(connection)
    socket.on('error', () => {})
    socket.on('close', () => { connection.isClosed = true })
    socket.setEncoding('utf8').on('data', text => {
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? ''
      messages.push(...lines.filter(Boolean).map(line => JSON.parse(line)))
    })
  }).listen(file)
  await once(server, 'listening')
  undo.push(() => {
    for (const { socket } of connections) socket.destroy()
    server.close()
  })
  return { file, connections }
}

const command = (changes = {}) =>
  JSON.stringify({ v: 1, type: 'command', id: 'a', command: 'look', ...changes }) + '\n'

/**
 * @param {string} url
 * @param {http.Agent} agent
 */
const get = (url, agent) => new Promise((resolve, reject) => {
  http.get(url, { agent }, response => {
    let text = ''
    response.setEncoding('utf8').on('data', chunk => { text += chunk })
    response.on('end', () => resolve(text))
  }).on('error', reject)
})

/**
 * A client that sends 50 requests a second and does not wait for answers.
 * @param {string} url
 * @param {number} seconds
 * @returns {Promise<number>} number of answers within this time
 */
async function load (url, seconds) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 50 })
  let served = 0
  let isOver = false
  for (const end = performance.now() + 1000 * seconds; performance.now() < end; await wait(20)) {
    get(url, agent).then(() => { if (!isOver) served++ }, () => {})
  }
  isOver = true
  agent.destroy()
  return served
}

/**
 * @param {Promise<any>} promise
 * @param {number} ms
 * @param {any} instead
 */
const within = (promise, ms, instead) => Promise.race([promise, wait(ms).then(() => instead)])

it('the agent waits 30 s before it reconnects to a peer whose connection it closed', async () => {
  const { file, connections } = await listen(makeFolder(PRIVATE))
  const transport = new Transport({ path: file }, () => ({ hello: () => '{"type":"hello"}\n' }))
  undo.push(() => transport.stop())
  transport.tick(0)
  await until(() => connections.length === 1)
  connections[0].socket.write('\n'.repeat(10))
  await until(() => connections[0].isClosed)
  const nowSeconds = performance.now() / 1000
  transport.tick(nowSeconds + 29)
  await wait(200)
  expect(connections).toHaveLength(1)
  transport.tick(nowSeconds + 30)
  await until(() => connections.length === 2)
})

describe.each(NODES.map(node => [versionOf(node), node]))('on Node %s', (_, node) => {
  /**
   * @param {string} socket
   * @param {NodeJS.ProcessEnv} [env]
   */
  const watched = (socket, env = {}, args = ['-e', 'setInterval(() => {}, 1000)'], before = []) =>
    endAfter(spawnWatched({
      node, before, args, socket, env: { ...QUICK, ...env }, timeoutMs: 40_000
    }))

  it('an app serves requests whatever an impostor sends, and ends on SIGTERM', async () => {
    /** @param {string} attack */
    const prepare = async attack => {
      const folder = makeFolder(attack === 'trusted looks' ? PRIVATE : SHARED)
      const token = path.join(folder, 'token')
      fs.writeFileSync(token, 'secret')
      const file = path.join(folder, 'exporter.sock')
      const impostor = endAfter(spawnBounded(node, [IMPOSTOR, file, attack], { timeoutMs: 40_000 }))
      await impostor.said('listening\n')
      const env = attack === 'trusted looks' ? {} : { MEMWATCH_TOKEN_FILE: token }
      const app = watched(file, env, [APP])
      const { port } = JSON.parse(await app.said('\n'))
      return { attack, impostor, app, url: `http://127.0.0.1:${port}` }
    }
    const cases = []
    for (const attack of attacks) cases.push(await prepare(attack))
    await Promise.all(cases.map(({ impostor }) => impostor.said('connected\n')))

    const results = Object.fromEntries(await Promise.all(cases.map(async ({ attack, app, url }) => {
      const served = await load(url, 3)
      const unmeasured = { longestBlockSeconds: Infinity, cpuSeconds: Infinity }
      const asked = get(`${url}/fared`, new http.Agent()).then(JSON.parse)
      const fared = await within(asked, 5000, unmeasured)
      const toldAt = performance.now()
      app.child.kill()
      const { signal } = await within(app.ended, 5000, { signal: 'none within 5 s' })
      return [attack, { served, ...fared, signal, endSeconds: (performance.now() - toldAt) / 1000 }]
    })))
    const { silence } = results
    // A busy machine makes blocks of the loop longer, but not the CPU time of the app.
    const harmed = attacks.filter(attack => {
      const { served, longestBlockSeconds, cpuSeconds, signal, endSeconds } = results[attack]
      return served < 0.7 * silence.served ||
        longestBlockSeconds > 3 * silence.longestBlockSeconds + 1 ||
        cpuSeconds > 1.5 * silence.cpuSeconds + 0.3 ||
        signal !== 'SIGTERM' || endSeconds > silence.endSeconds + 1
    })
    expect({ harmed, ...(harmed.length > 0 && results) }).toEqual({ harmed: [] })
    expect(silence.served).toBeGreaterThan(50)
  })

  it('the agent hangs up after ten lines without a trusted command, not after nine', async () => {
    const LINES = {
      'empty lines': '\n',
      'text that is not JSON': 'x\n',
      'JSON that is not a command': '{"v":1,"type":"frame"}\n',
      'nothing as JSON': 'null\n',
      'commands without a proof': command(),
      'proofs that are no text': command({ proof: { toString: 1 } }),
      'the longest lines': `${'x'.repeat(4096)}\n`
    }
    const reactions = await Promise.all(Object.entries(LINES).map(async ([name, line]) => {
      const folder = makeFolder(SHARED)
      const token = path.join(folder, 'token')
      fs.writeFileSync(token, 'secret')
      const { file, connections } = await listen(folder)
      watched(file, { MEMWATCH_TOKEN_FILE: token })
      await until(() => connections[0]?.of('frame').length > 0)
      const [connection] = connections
      connection.socket.write(line.repeat(9))
      const { sequence } = connection.of('frame').at(-1)
      await until(() => connection.of('frame').at(-1).sequence > sequence + 5)
      const holdsAtNine = !connection.isClosed
      const writtenMs = performance.now()
      connection.socket.write(line.repeat(100))
      await until(() => connection.isClosed)
      await wait(2500) // The agent would reconnect after a second to a peer that only disconnected.
      const answers = connection.of('answer').map(({ reason }) => reason)
      return {
        name,
        holdsAtNine,
        // Times of reconnects after the flood, in ms. If the machine stalls for half a minute, the
        // agent's wait of 30 s ends. An agent whose hello has changed reconnects at once.
        reconnectsMs: connections.slice(1)
          .filter(({ acceptedMs, of }) => acceptedMs < writtenMs + 29_000 &&
            of('hello')[0]?.gcCounter === connection.of('hello')[0].gcCounter)
          .map(({ acceptedMs }) => Math.round(acceptedMs - writtenMs)),
        answers: answers.length > 10 ? 'too many' : [...new Set(answers)]
      }
    }))
    const answered = ['commands without a proof', 'proofs that are no text']
    expect(reactions).toEqual(Object.keys(LINES).map(name => ({
      name,
      holdsAtNine: true,
      reconnectsMs: [],
      answers: answered.includes(name) ? ['not_trusted'] : []
    })))
  })

  it('the agent hangs up at a line that exceeds the limit of a command', async () => {
    const { file, connections } = await listen(makeFolder(PRIVATE))
    watched(file)
    await until(() => connections[0]?.of('frame').length > 0)
    const padded = length =>
      command({ command: 'none' }).replace('}', `,"x":"${'x'.repeat(length)}"}`)
    const fits = padded(4096 - padded(0).length + 1)
    expect(fits).toHaveLength(4097) // The length includes the newline.
    connections[0].socket.write(fits)
    await until(() => connections[0].of('answer').length === 1)
    connections[0].socket.write(fits.replace('x', 'xx'))
    await until(() => connections[0].isClosed)
  })

  it('a trusted exporter loses no command: commands beyond ten a second wait', async () => {
    const { file, connections } = await listen(makeFolder(PRIVATE))
    watched(file)
    await until(() => connections[0]?.of('frame').length > 0)
    const [connection] = connections
    expect(connection.of('hello')[0].commands).toEqual(['look', 'trim', 'capture', 'sample_heap', 'count_slices'])
    const ids = Array.from({ length: 25 }, (_, i) => `number ${i}`)
    const text = ids.map(id => command({ id })).join('')
    const began = performance.now()
    // Commands are sent in pieces with arbitrary boundaries.
    for (let at = 0; at < text.length; at += 100) connection.socket.write(text.slice(at, at + 100))
    await until(() => connection.of('answer').length >= 10)
    await until(() => connection.of('answer').length >= ids.length)
    expect(performance.now() - began).toBeGreaterThan(1500)
    expect(connection.of('answer')).toEqual(ids.map(id => ({ v: 1, type: 'answer', id, ok: true })))
    expect(connection.isClosed).toBe(false)
  })

  it('an agent on an untrusted socket offers no commands and answers none', async () => {
    const { file, connections } = await listen(makeFolder(SHARED))
    watched(file)
    await until(() => connections[0]?.of('frame').length > 0)
    const [{ socket, of, messages }] = connections
    expect(Object.keys(messages[0])).not.toEqual(expect.arrayContaining(['commands']))
    expect(messages[0]).not.toHaveProperty('nonce')
    socket.write(command().repeat(10))
    await until(() => connections[0].isClosed)
    expect(of('answer')).toEqual([])
  })

  it('answers to commands displace no waiting frame', async () => {
    const folder = makeFolder(PRIVATE)
    const { file, connections } = await listen(folder)
    const fills = path.join(folder, 'fill.js')
    // The socket's send buffer is full, so the agent's writes must wait.
    fs.writeFileSync(fills, `
      const net = require('net'), fs = require('fs'), { connect } = net
      net.connect = (...args) => connect(...args).on('connect', function () {
        try { for (;;) fs.writeSync(this._handle.fd, Buffer.alloc(8192, '\\n')) } catch {}
      })`)
    watched(file, {}, undefined, ['-r', fills])
    await until(() => connections.length > 0)
    const [connection] = connections
    connection.socket.pause()
    connection.socket.write(command({ id: 'x'.repeat(64), command: 'none' }).repeat(2000))
    await wait(1500)
    connection.socket.resume()
    await until(() => connection.of('frame').length > 20)
    const frames = connection.of('frame')
    expect(frames.map(({ sequence }) => sequence)).toEqual(frames.map((_, i) => i + 1))
    expect(frames.at(-1).values.framesDropped).toBe(0)
  })

  it('the proof of a command is valid once, and only on its connection', async () => {
    const folder = makeFolder(SHARED)
    const token = path.join(folder, 'token')
    fs.writeFileSync(token, 'secret')
    const { file, connections } = await listen(folder)
    watched(file, { MEMWATCH_TOKEN_FILE: token })
    /**
     * @param {any} connection
     * @param {number} sequence
     */
    const proved = ({ messages: [{ pid, startedAtUnixMs, nonce }] }, sequence) => {
      const asked = { id: `number ${sequence}`, command: 'look', sequence }
      const proof = computeProof('secret', { ...asked, pid, startedAtUnixMs, nonce })
      return command({ ...asked, proof })
    }
    /**
     * @param {any} connection
     * @param {string[]} lines
     * @returns {Promise<unknown[]>} answers
     */
    const said = async (connection, lines) => {
      const before = connection.of('answer').length
      connection.socket.write(lines.join(''))
      await until(() => connection.of('answer').length >= before + lines.length)
      return connection.of('answer').slice(before).map(({ ok, reason }) => reason ?? ok)
    }
    await until(() => connections[0]?.of('frame').length > 0)
    const [first] = connections
    const lines = [1, 2, 4].map(sequence => proved(first, sequence))
    expect(await said(first, [...lines, ...lines, proved(first, 3), proved(first, 5)]))
      .toEqual([true, true, true, 'not_trusted', 'not_trusted', 'not_trusted', 'not_trusted', true])
    first.socket.destroy()
    // On a busy machine the agent may need more than one attempt to connect.
    const isNext = connection =>
      connection !== first && !connection.isClosed && connection.of('frame').length > 0
    await until(() => connections.some(isNext))
    const [second] = connections.filter(isNext)
    expect(second.messages[0].nonce).toMatch(/^[0-9a-f]{32}$/)
    expect(second.messages[0].nonce).not.toBe(first.messages[0].nonce)
    expect(await said(second, [...lines, proved(second, 1)]))
      .toEqual(['not_trusted', 'not_trusted', 'not_trusted', true])
  })
})
