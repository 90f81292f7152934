'use strict'

const { readDuration } = require('../../engine/text/duration')

it.each([
  ['90', 90],
  ['90s', 90],
  ['1.5m', 90],
  ['24h', 86_400],
  ['7d', 604_800],
  ['2w', 1_209_600],
  [' 5m ', 300],
  ['0.5', 0.5]
])('%j is %d s', (text, seconds) => expect(readDuration(text)).toBe(seconds))

it.each(['', '0', '0s', '-1', '1e3', '5 m', '5M', '1h30m', 'soon', 'Infinity', '4000d'])(
  '%j is refused with the expected form', text => {
    expect(() => readDuration(text)).toThrow(new RangeError(
      `expected a time such as 90, 90s, 5m, 24h or 7d, got ${JSON.stringify(text)}`))
  })
