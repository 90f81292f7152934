'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { once } = require('node:events')
const { gunzipSync } = require('node:zlib')
const { InTurns } = require('../../exporter/in-turns')
const { replayFile } = require('../../cli/sources/replay-file')
const { startExporter } = require('../support/exporter')

const RECORDING = path.join(__dirname, '../recordings/20-js-heap-leak-jobs-broken.ndjson.gz')
const [a, b, c] = /** @type {any[]} */ (['a', 'b', 'c'])
const nextTurn = () => new Promise(resolve => setImmediate(resolve))

describe('the evaluation queue', () => {
  it('evaluates each target once in the next turn, in order of arrival', async () => {
    const judged = []
    const inTurns = new InTurns(target => judged.push(target))
    for (const target of [b, a, b, c]) inTurns.add(target)
    expect(judged).toEqual([])
    await nextTurn()
    expect(judged).toEqual(['b', 'a', 'c'])
    inTurns.end()
    await nextTurn()
    expect(judged).toEqual(['b', 'a', 'c'])
  })

  it('evaluates at once on demand, and at the end', async () => {
    const judged = []
    const inTurns = new InTurns(target => judged.push(target))
    inTurns.add(a)
    inTurns.add(b)
    inTurns.now(b)
    inTurns.now(c)
    expect(judged).toEqual(['b'])
    inTurns.end()
    expect(judged).toEqual(['b', 'a'])
    inTurns.add(b)
    await nextTurn()
    expect(judged).toEqual(['b', 'a', 'b'])
  })

  it('lets other work run in between', async () => {
    let turn = 0
    const judgedIn = []
    const inTurns = new InTurns(() => {
      judgedIn.push(turn)
      // Longer than the time limit of work in one turn.
      for (const began = performance.now(); performance.now() - began < 8;);
    })
    for (const target of [a, b, c]) inTurns.add(target)
    while (judgedIn.length < 3) {
      await nextTurn()
      turn++
    }
    expect(new Set(judgedIn).size).toBe(3)
  })
})

it('evaluates a session that arrives at once frame by frame, as a replay does', async () => {
  const told = (
    /** @type {import('../../engine/history/target').Target} */ target,
    /** @type {any} */ { diagnosis, state }
  ) => [target.frame?.uptimeSeconds, diagnosis, state]
  const replayed = []
  await replayFile(RECORDING, {
    onVerdict: (target, verdict) => replayed.push(told(target, verdict))
  })
  const lines = gunzipSync(fs.readFileSync(RECORDING))
    .toString()
    .trim()
    .split('\n')
    .map(text => JSON.parse(text).line)
    .filter(Boolean)
  expect(lines.filter(({ type }) => type !== 'frame').map(({ type }) => type)).toEqual([
    'hello',
    'bye'
  ])
  const { exporter, connect, stop } = await startExporter()
  const live = []
  exporter.on('verdict', (target, verdict) => live.push(told(target, verdict)))
  const ended = once(exporter, 'end').then(() => [...live])
  const connection = await connect()
  connection.end(lines.map(line => JSON.stringify(line) + '\n').join(''))
  expect(await ended).toEqual(replayed)
  expect(replayed.filter(([, , state]) => state === 'confirmed').length).toBeGreaterThan(0)
  await stop()
  expect(live).toEqual(replayed)
})
