'use strict'

const { EventEmitter } = require('node:events')
const { Progress } = require('../../cli/watch/progress')
const { startExporter } = require('../support/exporter')
const { tellRecording } = require('../support/recorded-agent')

/**
 * @param {[string, string][]} verdicts diagnosis and state, one after the other
 * @param {{ verbose?: boolean }} [options]
 * @returns {string[]} its lines
 */
function saidOf (verdicts, options) {
  /** @type {string[]} */
  const lines = []
  const output = { isTerminal: false, clear () {}, say: (/** @type {string} */ line) => lines.push(line) }
  const exporter = new EventEmitter()
  const progress = new Progress(/** @type {any} */ (output), options)
  progress.start(/** @type {any} */ (exporter), { host: '127.0.0.1', port: 1 })
  const target = { name: 'app', thread: 'main', hello: { pid: 1 } }
  for (const [diagnosis, state] of verdicts) {
    exporter.emit('verdict', target, { diagnosis, state, summary: 'why' })
  }
  progress.stop()
  return lines.slice(1).map(line => line.replace(/^.* s {2}/, ''))
}

it('prints findings, and the end of a finding', () => {
  expect(saidOf([
    ['js-heap-leak', 'ok'], ['js-heap-leak', 'suspected'], ['js-heap-leak', 'confirmed'],
    ['oversized-heap', 'unknown'], ['js-heap-leak', 'unknown'], ['js-heap-leak', 'ok']
  ])).toEqual([
    'app main: js-heap-leak suspected: why',
    'app main: js-heap-leak confirmed: why',
    'app main: js-heap-leak unknown: why'
  ])
})

it('prints ruled out checks, too, with -v', () => {
  expect(saidOf([['js-heap-leak', 'ok'], ['oversized-heap', 'unknown']], { verbose: true }))
    .toEqual(['app main: js-heap-leak ok: why'])
})

it('draws one line with state, trend and GC of a recorded leak', async () => {
  const it_ = await startExporter({ autoCaptures: false })
  const agent = await tellRecording(it_, 'js-heap-leak', { name: 'shop' }, { share: 0.66 })
  const output = {
    isTerminal: true, clear () {}, say () {}, redraw: (/** @type {string} */ line) => drawn?.(line)
  }
  /** @type {((line: string) => void) | undefined} */
  let drawn
  const progress = new Progress(/** @type {any} */ (output))
  try {
    const line = await new Promise(resolve => {
      // Verdicts follow frames, so the first lines may have fewer.
      drawn = line => line.includes('js-heap-leak') && resolve(line)
      progress.start(it_.exporter, { host: '127.0.0.1', port: 1 })
    })
    expect(line).toMatch(
      /^shop [~!] (suspected|confirmed) js-heap-leak · RSS \d+ MiB ↑ \d+ MiB\/min [▁▂▃▄▅▆▇█]{8} · GC [\d.]+ % · \d+ s$/)
  } finally {
    progress.stop()
    agent.destroy()
    await it_.stop()
  }
})

it.each([
  ['without a process', [], [expect.stringContaining('no Node.js process has reported yet')]],
  ['with a process that has sent no frame', [{}], [expect.stringContaining('when its event loop turns')]],
  ['but not if a process has reported', [{ frame: {} }], []]
])('says after a while why nothing is known, %s', (_, targets, expected) => {
  jest.useFakeTimers()
  try {
    /** @type {string[]} */
    const lines = []
    const output = {
      isTerminal: false, clear () {}, say: (/** @type {string} */ line) => lines.push(line)
    }
    const progress = new Progress(/** @type {any} */ (output))
    const exporter = Object.assign(new EventEmitter(), { targets })
    progress.start(/** @type {any} */ (exporter), { host: '127.0.0.1', port: 1 })
    jest.advanceTimersByTime(60_000)
    progress.stop()
    expect(lines.slice(1)).toEqual(expected)
  } finally {
    jest.useRealTimers()
  }
})
