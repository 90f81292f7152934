'use strict'

const { findCase } = require('../../engine/verdicts/case')
const { summarize } = require('../../engine/verdicts/headline')
const { watchCommand } = require('../../cli/watch-command')
const { environment } = require('../support/agent-collector')

/** V8 itself collects this app never: it hardly allocates. */
const QUIET = 'setInterval(() => {}, 1000)'
/** Machines that test are busy, and a pause that waits for a CPU takes more of the budget. */
const MOST_SECONDS = 200

/**
 * `memwatch run` of a quiet app, until `isOver` says so.
 * @param {(headline: import('../../engine/verdicts/headline').Headline) => boolean} isOver
 * @param {{ env?: NodeJS.ProcessEnv, abort?: AbortController }} [options]
 */
async function run (isOver, { env = {}, abort = new AbortController() } = {}) {
  const { report } = await watchCommand({
    command: [process.execPath, '-e', QUIET],
    forSeconds: MOST_SECONDS,
    abort: abort.signal,
    stdout: 2,
    env: { ...environment(), ...env },
    onStart: exporter => {
      exporter.on('frame', target => {
        if (isOver(summarize(findCase(target).verdicts))) abort.abort()
      })
    }
  })
  const [{ headline, verdicts, values }] = report.targets
  return { headline, values, leak: verdicts.find(({ diagnosis }) => diagnosis === 'js-heap-leak') }
}

it('memwatch run decides on a quiet app, with GCs that it told apart; not where those are off', async () => {
  const abort = new AbortController()
  const withoutThem = run(() => false, { env: { MEMWATCH_FORCED_GC: 'off' }, abort })
  const decided = await run(({ state }) => state === 'ok').finally(() => abort.abort())
  expect(decided.headline.state).toBe('ok')
  expect(decided.leak?.summary).toMatch(/follow full GCs that memwatch ran$/)
  const { headline, leak } = await withoutThem
  expect(headline.state).toBe('undecided')
  expect(leak?.state).toBe('unknown')
}, 1000 * (MOST_SECONDS + 40))
