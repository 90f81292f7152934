'use strict'

const { setTimeout: wait } = require('node:timers/promises')
const { fuzzer } = require('../fuzz-input')
const {
  connect,
  send,
  helloLine,
  frameLine,
  LONGEST_FRAMES,
  LONGEST_HELLOS,
  FIRST_PID
} = require('./wire')

/** Number of lines on a connection: after a hundred rejected lines the exporter closes it. */
const LINES_A_CONNECTION = 100
const SENDERS = 50
/**
 * Time limit of this attack: with a tenth of a core a million messages take minutes. The attack
 * drops the rest.
 */
const MESSAGES_WITHIN_MS = 20 * 60_000
const JUNK_CONNECTIONS = 64
const MOST_TARGETS = 1000
const IDLE_CONNECTIONS = 4000
/** Pause between connections that replace those closed by the exporter. */
const REOPEN_EVERY_MS = 5
const SILENT_HELLOS = 5000
const FLOODS = 16

/**
 * @typedef {import('./stage').Stage} Stage
 * @typedef {import('./attacks').Options} Options
 */

/** @param {Stage} stage */
const open = stage => connect(stage.socketOf('attacker'))

/**
 * @param {Stage} stage
 * @param {Options} options
 */
async function hostileMessages (stage, { messages, seed }) {
  const fuzz = fuzzer(seed)
  const deadline = Date.now() + MESSAGES_WITHIN_MS
  let sent = 0
  let connections = 0
  const goesOn = () => sent < messages && !stage.ended && Date.now() < deadline
  await Promise.all(
    Array.from({ length: SENDERS }, async () => {
      while (goesOn()) {
        const socket = await open(stage)
        if (!socket) {
          await wait(20)
          continue
        }
        connections++
        socket.resume()
        const pid = 1 + fuzz.below(20)
        const started = { pid, startedAtUnixMs: fuzz.below(1e6) }
        if (fuzz.random() < 0.8) {
          await send(socket, helloLine(connections, fuzz.random() < 0.5 ? started : {}))
        }
        for (let i = 0; i < LINES_A_CONNECTION && goesOn() && !socket.destroyed; i += 20) {
          const lines = Array.from({ length: 20 }, () => fuzz.line(pid))
          sent += lines.length
          await send(socket, Buffer.concat(lines))
        }
        if (fuzz.random() < 0.5) await endOf(socket)
        else socket.destroy()
      }
    })
  )
  const { text } = await stage.scrape().catch(() => ({ text: '' }))
  const read =
    sumOf(text, 'memwatch_exporter_frames_total') +
    sumOf(text, 'memwatch_exporter_lines_rejected_total')
  return {
    tried: `${sent} messages over ${connections} connections, seed ${seed}; the exporter read ` +
      read
  }
}

/** @param {import('node:net').Socket} socket */
async function endOf (socket) {
  if (socket.destroyed) return
  const closed = new Promise(resolve => socket.once('close', resolve))
  socket.end()
  await Promise.race([closed, wait(5000)])
  socket.destroy()
}

/**
 * @param {string} text of /metrics
 * @param {string} name
 */
const sumOf = (text, name) =>
  text
    .split('\n')
    .filter(line => line.startsWith(name))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)

/**
 * Connections that reopen when the exporter closes them.
 * @param {Stage} stage
 * @param {number} count
 * @param {number} seconds
 * @param {(socket: import('node:net').Socket, i: number) => Promise<void>} begin
 */
async function hold (stage, count, seconds, begin) {
  /** @type {Set<import('node:net').Socket>} */
  const held = new Set()
  const deadline = Date.now() + 1000 * seconds
  let opened = 0
  let most = 0
  while (Date.now() < deadline && !stage.ended) {
    const socket = held.size < count ? await open(stage) : undefined
    if (!socket) {
      await wait(20)
      continue
    }
    held.add(socket)
    socket.resume().once('close', () => held.delete(socket))
    most = Math.max(most, held.size)
    await Promise.race([begin(socket, opened++), wait(1000)])
    if (opened > count) await wait(REOPEN_EVERY_MS)
  }
  for (const socket of held) socket.destroy()
  return { opened, most }
}

/**
 * @param {Stage} stage
 * @param {Options} options
 */
async function junkFields (stage, { seconds }) {
  let [held, highest] = [0, 0]
  for (const text of Object.values(LONGEST_FRAMES)) {
    const { opened, most } = await hold(stage, JUNK_CONNECTIONS, seconds / 2, (socket, i) =>
      send(socket, helloLine(held + i) + text)
    )
    held += opened
    highest = Math.max(highest, most)
  }
  return {
    tried: `${held} connections, at most ${highest} at once, each with a frame of 256 KiB of ` +
      'unknown lists, objects, keys, texts or numbers'
  }
}

/**
 * @param {Stage} stage
 * @param {Options} options
 */
async function longestLines (stage, { seconds }) {
  const frames = Object.values(LONGEST_FRAMES)
  let bytes = 0
  const { opened, most } = await hold(stage, MOST_TARGETS, 2 * seconds, async (socket, i) => {
    const lines = [LONGEST_HELLOS[i % LONGEST_HELLOS.length](i), ...frames]
    for (const line of lines) {
      bytes += Buffer.byteLength(line)
      await send(socket, line)
    }
  })
  return {
    tried: `${opened} connections, at most ${most} at once, each a target of its own, with ` +
      `hello and frames of 256 KiB (${Math.round(bytes / 2 ** 20)} MiB)`
  }
}

/**
 * @param {Stage} stage
 * @param {Options} options
 */
async function idleConnections (stage, { seconds }) {
  const half = LONGEST_FRAMES.lists.slice(0, 60_000)
  const { opened, most } = await hold(stage, IDLE_CONNECTIONS, seconds, async (socket, i) => {
    if (i % 3 === 1) await send(socket, helloLine(i))
    if (i % 3 === 2) await send(socket, half)
  })
  return {
    tried: `${opened} connections, at most ${most} at once: silent, with a hello only, and with ` +
      'half a line of 60 KB'
  }
}

/**
 * @param {Stage} stage
 * @param {Options} options
 */
async function hellosOnly (stage, { seconds }) {
  const deadline = Date.now() + 1000 * seconds
  let sent = 0
  await Promise.all(
    Array.from({ length: SENDERS }, async () => {
      while (sent < SILENT_HELLOS && Date.now() < deadline && !stage.ended) {
        const socket = await open(stage)
        if (!socket) {
          await wait(20)
          continue
        }
        await send(socket, helloLine(sent++))
        await endOf(socket.resume())
      }
    })
  )
  return { tried: `${sent} hellos, each of another process, without a frame` }
}

/**
 * @param {Stage} stage
 * @param {Options} options
 */
async function flood (stage, { seconds }) {
  const deadline = Date.now() + 1000 * seconds
  let sent = 0
  let connections = 0
  const goesOn = () => Date.now() < deadline && !stage.ended
  await Promise.all(
    Array.from({ length: FLOODS }, async (_, i) => {
      while (goesOn()) {
        const socket = await open(stage)
        if (!socket) {
          await wait(20)
          continue
        }
        connections++
        await send(socket.resume(), helloLine(i))
        for (let sequence = 1; goesOn() && !socket.destroyed; sequence += 100) {
          await send(
            socket,
            Array.from({ length: 100 }, (_, n) => frameLine(sequence + n)).join('')
          )
          sent += 100
        }
        socket.destroy()
      }
    })
  )
  return {
    tried: `${sent} valid frames over ${connections} connections, ${FLOODS} at once, as fast as ` +
      'the exporter accepts them'
  }
}

/**
 * @param {number} value
 * @param {string[]} names
 * @returns {Record<string, number>}
 */
const all = (value, names) => Object.fromEntries(names.map(name => [name, value]))

/**
 * Impossible numbers, each in one frame of a target of its own.
 * @param {Stage} stage
 */
async function impossibleNumbers (stage) {
  const values = [1e308, Number.MAX_VALUE, 2 ** 53, 9e15, 1e21, 5e-324]
  const sockets = []
  for (const [i, value] of values.entries()) {
    const socket = await open(stage)
    if (!socket) continue
    sockets.push(socket.resume())
    await send(socket, helloLine(i))
    await send(
      socket,
      frameLine(1, {
        rssBytes: value,
        residentBytes: all(value, [
          'malloc_heap',
          'malloc_arenas',
          'malloc_mapped',
          'stacks',
          'other'
        ]),
        allocatorBytes: all(value, [
          'heap_in_use',
          'arenas_in_use',
          'heap_free_pages',
          'arenas_free_pages',
          'mapped'
        ])
      })
    )
    const second = await open(stage)
    if (!second) continue
    sockets.push(second.resume())
    await send(second, helloLine(100 + i, { constrainedBytes: value, hostMemoryBytes: value }))
    const counters = [
      'cpuUserSeconds',
      'heapUsedBytes',
      'heapTotalBytes',
      'heapSizeLimitBytes',
      'externalBytes',
      'rssAnonBytes',
      'containerUsageBytes'
    ]
    await send(second, frameLine(1, { rssBytes: value, ...all(value, counters) }))
    await send(second, frameLine(value, { rssBytes: value }))
  }
  await wait(6000) // Wait until the exporter has judged the targets.
  const answers = []
  for (const at of ['targets?limit=1000', 'diagnoses?limit=1000', 'deaths']) {
    answers.push([
      at,
      await stage.api(at).then(
        ({ status }) => status,
        error => error.message
      )
    ])
  }
  const own = await stage
    .awaitTarget(stage.good.pid, () => true, 10_000)
    .then(
      () => true,
      () => false
    )
  for (const socket of sockets) socket.destroy()
  return {
    tried: `${2 * values.length} targets with numbers up to 1.8e308 in fields of memory, limits ` +
      'and sequences',
    claims: [
      ...answers.map(([at, status]) => ({
        text: `/api/v1/${at} answers 200`,
        held: status === 200,
        detail: String(status)
      })),
      { text: 'the API still lists the normal app', held: own, detail: '' }
    ]
  }
}

module.exports = {
  flood,
  hellosOnly,
  hostileMessages,
  idleConnections,
  impossibleNumbers,
  junkFields,
  longestLines,
  FIRST_PID
}
