'use strict'

const { EventEmitter } = require('node:events')
const { LogPart } = require('../../exporter/parts/log')

describe('the log', () => {
  /** @type {string[]} */
  let lines
  /** @type {EventEmitter} */
  let exporter
  beforeEach(() => {
    lines = []
    const at = level => (fields, text) => lines.push(`${level} ${fields.diagnosis}: ${text}`)
    exporter = Object.assign(new EventEmitter(), {
      log: { info: at('info'), debug: at('debug'), warn: at('warn'), error: at('error') }
    })
    new LogPart().start(/** @type {any} */ (exporter))
  })
  const judge = (target, ...states) => {
    for (const state of states) {
      exporter.emit('verdict', target, { diagnosis: 'js-heap-leak', state, summary: state })
    }
  }

  it('has findings and their end, and at level debug what was only ruled out', () => {
    const target = { name: 'shop', thread: 'main' }
    judge(target, 'unknown', 'ok', 'suspected', 'confirmed', 'ok', 'unknown')
    expect(lines).toEqual([
      'debug js-heap-leak: unknown', 'debug js-heap-leak: ok', 'info js-heap-leak: suspected',
      'info js-heap-leak: confirmed', 'info js-heap-leak: ok', 'debug js-heap-leak: unknown'
    ])
  })

  it('keeps targets apart', () => {
    judge({ name: 'shop', thread: 'main' }, 'confirmed')
    judge({ name: 'shop-2', thread: 'main' }, 'ok')
    expect(lines).toEqual(['info js-heap-leak: confirmed', 'debug js-heap-leak: ok'])
  })
})
