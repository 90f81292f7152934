'use strict'

const { watchCommand } = require('../../cli/watch-command')
const { environment } = require('../support/agent-collector')

/** V8 itself rarely collects this app: it keeps little, and allocates little else. */
const SLOW_LEAK = 'const kept = []; setInterval(() => kept.push(Array(25_000).fill(kept)), 500)'
/** Machines that test are busy, and a pause that waits for a CPU takes more of the budget. */
const MOST_SECONDS = 120

/**
 * `memwatch run` until the app has had two full GCs on command, or somebody aborts.
 * @param {AbortController} abort
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {Promise<number>} GCs on command that its frames counted
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

it('memwatch run asks for full GCs, and counts them apart; not where those are off', async () => {
  const abort = new AbortController()
  const counts = await Promise.all([run(abort), run(abort, { MEMWATCH_FORCED_GC: 'off' })])
  expect(counts).toEqual([2, 0])
}, 1000 * (MOST_SECONDS + 40))
