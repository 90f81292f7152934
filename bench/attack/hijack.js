'use strict'

const fs = require('node:fs')
const { setTimeout: wait } = require('node:timers/promises')
const { line } = require('../../test/support/frames')
const { connect, send, frameLine } = require('./wire')

const ROUNDS = 3
/** More than the five intervals of silence after which a target counts as down. */
const LATER_MS = 8000
const DEATH_WITHIN_MS = 60_000
const MOST = Number.MAX_SAFE_INTEGER

/** @typedef {import('./stage').Stage} Stage */

/**
 * Another process of the victim's container pretends to be the victim, and knows its exact hello.
 * @param {Stage} stage
 */
async function hijack (stage) {
  const victim = await stage.startApp('victim')
  await stage.awaitTarget(victim.pid, ({ uptimeSeconds }) => uptimeSeconds >= 3, 60_000)
  const hello = await readHello(stage, victim.pid)
  /** @type {string[]} */
  const heard = []
  const sockets = []
  const speak = async (/** @type {string[]} */ lines) => {
    const socket = await connect(stage.socketOf('good'))
    if (!socket) return
    sockets.push(socket)
    socket.setEncoding('utf8').on('data', text => heard.push(String(text)))
    await send(socket, lines.join(''))
  }
  const same = line(hello) + '\n'
  const huge = { rssBytes: 6.66e12, heapUsedBytes: 6e12, rssAnonBytes: 6e12 }
  const bye = line({ type: 'bye', sequence: MOST, atUnixMs: Date.now(), exitCode: 137 }) + '\n'
  for (let round = 0; round < ROUNDS; round++) {
    await speak([same, frameLine(9e15, huge)])
    await speak([same, frameLine(100_000, { rssBytes: 1e308 })])
    await speak([line({ ...hello, name: 'not-the-victim' }) + '\n', frameLine(50_000, huge)])
    await speak([line({ ...hello, nodeOptions: ['--evil'] }) + '\n', bye])
    await wait(1000)
  }
  await speak([
    line({ ...hello, name: 'mallory', startedAtUnixMs: hello.startedAtUnixMs + 5000 }) + '\n',
    frameLine(1, huge)
  ])
  await wait(LATER_MS)

  const headers = { authorization: `Bearer ${stage.token}` }
  const asked = await stage
    .api('targets/victim/captures?kind=report', { method: 'POST', headers, timeoutMs: 20_000 })
    .then(
      ({ status }) => status,
      error => error.message
    )
  await wait(2000)
  const all = JSON.parse((await stage.api('targets')).text)
  const mains = all.filter(
    (/** @type {any} */ { pid, thread }) => pid === victim.pid && thread === 'main'
  )
  const shown = mains.find((/** @type {any} */ { target }) => target === 'victim')
  const deaths = JSON.parse((await stage.api('deaths')).text).filter(
    (/** @type {any} */ { pid }) => pid === victim.pid
  )
  const rssBytes = readRss(victim.pid)
  const claims = [
    {
      text: 'only the victim receives commands',
      held: !heard.join('').includes('"command"'),
      detail: heard.join('').slice(0, 80)
    },
    {
      text: 'a capture of the victim works',
      held: asked === 202 || asked === 201 || asked === 200,
      detail: String(asked)
    },
    {
      text: "the victim's numbers are its own",
      held: shown?.values.rssBytes > rssBytes / 2 && shown?.values.rssBytes < rssBytes * 2,
      detail: `${shown?.values.rssBytes} shown, ${rssBytes} true`
    },
    {
      text: 'the victim keeps its name and is up',
      held: shown?.up === true,
      detail: JSON.stringify(mains.map((/** @type {any} */ { target, up }) => ({ target, up })))
    },
    {
      text: 'no frame of the victim counts as lost',
      held: shown?.framesLost === 0,
      detail: String(shown?.framesLost)
    },
    {
      text: 'frames of the victim still arrive',
      held: shown?.uptimeSeconds > victim.aliveSeconds() - 15,
      detail: `${Math.round(shown?.uptimeSeconds)} of ${Math.round(victim.aliveSeconds())} s`
    },
    {
      text: 'no death of the victim is reported',
      held: deaths.length === 0,
      detail: deaths
        .map((/** @type {any} */ { text, sure }) => `${sure}: ${text}`)
        .join(' ')
        .slice(0, 200)
    },
    {
      text: "no other process with the victim's pid gets its name",
      held: !all.some(
        (/** @type {any} */ { pid, thread, target }) =>
          pid === victim.pid && thread === 'main' && /^victim-\d/.test(target)
      ),
      detail: JSON.stringify(mains.map((/** @type {any} */ { target }) => target))
    }
  ]
  for (const socket of sockets) socket.destroy()
  victim.kill('SIGKILL')
  const death = await awaitDeath(stage, victim.pid, deaths.length)
  claims.push({
    text: 'the real death of the victim is reported, not as a clean exit',
    held: death !== undefined && death.reason !== 'clean',
    detail: death ? `${death.reason}, ${death.sure}` : 'nothing is told'
  })
  return {
    tried: `${4 * ROUNDS + 1} connections that pretend to be a live process: its hello, frames ` +
      'with RSS of 1e308 and sequence 9e15, goodbyes with exit code 137',
    claims
  }
}

/**
 * The victim's own messages, which any process in its container can repeat.
 * @param {Stage} stage
 * @param {number} wanted pid
 */
async function readHello (stage, wanted) {
  const at = 'recording?target=victim&seconds=4'
  const asked = await stage.api(at, { method: 'POST' })
  const { text } = asked.status === 200 ? asked : await stage.api(at)
  const lines = text
    .trim()
    .split('\n')
    .map(item => JSON.parse(item).line)
  const found = lines.find(item => item?.type === 'hello' && item.pid === wanted)
  if (!found) throw new Error(`no hello of ${wanted} in a recording of 4 s`)
  return found
}

/**
 * @param {Stage} stage
 * @param {number} wanted pid
 * @param {number} before deaths reported for it while it lived
 */
async function awaitDeath (stage, wanted, before) {
  for (
    const deadline = Date.now() + DEATH_WITHIN_MS;
    Date.now() < deadline && !stage.ended;
    await wait(1000)
  ) {
    const { status, text } = await stage.api('deaths')
    const found =
      status === 200 ? JSON.parse(text).filter((/** @type {any} */ { pid }) => pid === wanted) : []
    if (found.length > before) return found[0]
  }
}

/**
 * @param {number} pid
 * @returns {number} bytes
 */
const readRss = pid =>
  1024 * Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1])

module.exports = { hijack }
