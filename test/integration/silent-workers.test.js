'use strict'

const { startExporter, eventually } = require('../support/exporter')
const { spawnWatched } = require('../support/agent-collector')
const { anatomyIn } = require('../../engine/signals/anatomy-in')
const { MIB } = require('../support/frames')

const WORKERS = 3
const HELD_BYTES = 30 * MIB
/**
 * Worker that fills its heap and then waits in Atomics.wait like an idle worker of a pool, so its
 * event loop is blocked.
 */
const WAITS = `
  const kept = []
  while (process.memoryUsage().heapUsed < ${HELD_BYTES}) kept.push({ at: kept.length, text: ['a', kept.length] })
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
`
const APP = `
  const { Worker } = require('node:worker_threads')
  for (let i = 0; i < ${WORKERS}; i++) new Worker(${JSON.stringify(WAITS)}, { eval: true })
  setInterval(() => {}, 1000)
`

it('heaps of silent workers have a part of their own in the breakdown', async () => {
  const exporter = await startExporter()
  const app = spawnWatched({
    args: ['-e', APP],
    socket: exporter.socket.path,
    env: { MEMWATCH_NAME: 'pool', MEMWATCH_INTERVAL_SECONDS: '0.2' },
    timeoutMs: 170_000
  })
  try {
    const look = () =>
      exporter.exporter.targets.find(({ values }) => values.workerThreads === WORKERS)
    const anatomyOf = target => target && anatomyIn(target.window())
    const isComplete = anatomy => (anatomy?.parts.silent_worker_heaps ?? 0) > WORKERS * HELD_BYTES
    // A scan may be expensive while the workers fill their heaps; the next scan follows one or two
    // minutes later.
    const { rssBytes, parts } = await eventually(() => anatomyOf(look()), isComplete, 150_000)
    expect(parts.unexplained / rssBytes).toBeLessThan(0.05)
    expect(parts.silent_worker_heaps).toBeLessThan(2 * WORKERS * HELD_BYTES)
    expect(parts.allocator_unasked / rssBytes).toBeLessThan(0.1)
    expect(exporter.exporter.targets.map(({ thread }) => thread)).toEqual(['main'])
  } finally {
    app.child.kill()
    await app.ended
    await exporter.stop()
  }
}, 180_000)
