'use strict'

const { watchCommand } = require('../../cli/watch/watch-command')
const { environment } = require('../support/agent-collector')

/** V8 rarely runs a major GC in this app, which allocates little. */
const SLOW_LEAK = 'const kept = []; setInterval(() => kept.push(Array(25_000).fill(kept)), 500)'
/** On a busy machine a pause includes waiting for a CPU, and uses more of the budget. */
const MOST_SECONDS = 120

/**
 * Runs `memwatch run` until two full GCs on command, or until the test aborts.
 * @param {AbortController} abort
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {Promise<number>} number of GCs on command in its frames
 */
async function run (abort, env = {}) {
  let count = 0
  await watchCommand({
    command: [process.execPath, '-e', SLOW_LEAK],
    forSeconds: MOST_SECONDS,
    abort: abort.signal,
    stdout: 2,
    env: { ...environment(), ...env },
    onStart: exporter => {
      exporter.on('frame', ({ values }) => {
        count = values.gc?.['major/memwatch']?.[0] ?? 0
        if (count >= 2) abort.abort()
      })
    }
  })
  return count
}

it('memwatch run requests full GCs, counted separately, unless they are off', async () => {
  const abort = new AbortController()
  const counts = await Promise.all([run(abort), run(abort, { MEMWATCH_FORCED_GC: 'off' })])
  expect(counts).toEqual([2, 0])
}, 1000 * (MOST_SECONDS + 40))
