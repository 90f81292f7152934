'use strict'

const { EventEmitter } = require('node:events')
const { Progress } = require('../../cli/progress')

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

it('says what is found, and when a finding goes', () => {
  expect(saidOf([
    ['js-heap-leak', 'ok'], ['js-heap-leak', 'suspected'], ['js-heap-leak', 'confirmed'],
    ['oversized-heap', 'unknown'], ['js-heap-leak', 'unknown'], ['js-heap-leak', 'ok']
  ])).toEqual([
    'app main: js-heap-leak suspected: why',
    'app main: js-heap-leak confirmed: why',
    'app main: js-heap-leak unknown: why'
  ])
})

it('says what is ruled out, too, with -v', () => {
  expect(saidOf([['js-heap-leak', 'ok'], ['oversized-heap', 'unknown']], { verbose: true }))
    .toEqual(['app main: js-heap-leak ok: why'])
})
