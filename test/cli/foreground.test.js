'use strict'

const { isInForeground } = require('../../cli/watch/foreground')

it.each([
  ['of the foreground group of a terminal', '7 (node) S 1 7 5 34816 7 0', true],
  ['of another group', '7 (node) S 1 7 5 34816 9 0', false],
  ['without a terminal', '7 (node) S 1 7 5 0 -1 0', false],
  ['whose name looks like fields', '7 (a) S 1 7 5 0 7 0) S 1 7 5 34816 9 0', false]
])('a terminal sends Ctrl-C to a process %s: %s', (_, stat, expected) => {
  expect(isInForeground(() => stat)).toBe(expected)
})

it('without /proc, stdin tells', () => {
  const fails = () => { throw new Error('ENOENT') }
  expect(isInForeground(fails)).toBe(process.stdin.isTTY === true)
})
