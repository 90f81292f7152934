'use strict'

const path = require('node:path')
const { spawnSync } = require('node:child_process')
const { nextThrift } = require('../../exporter/self-care/thrift')
const { environment } = require('../support/agent-collector')

const THRIFT = path.join(__dirname, '../../exporter/self-care/thrift.js')

/**
 * What one does whose new space is too small: some of what it allocates lives on for a while.
 * @param {string[]} hows set one after the other
 */
function newSpaceMib (hows) {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [
      '-e',
      `
    const v8 = require('node:v8')
    const { setFlags } = require(${JSON.stringify(THRIFT)})
    const sizes = []
    for (const how of ${JSON.stringify(hows)}) {
      if (how) setFlags(how)
      const kept = []
      for (let i = 0; i < 2e6; i++) kept[i % 50_000] = { i, list: [i] }
      sizes.push(v8.getHeapSpaceStatistics().find(space => space.space_name === 'new_space').space_size / 2 ** 20)
    }
    console.log(JSON.stringify(sizes))`
    ],
    { env: environment(), encoding: 'utf8' }
  )
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  return JSON.parse(stdout)
}

describe('thrift', () => {
  it('keeps the new space from growing, while it is wanted', () => {
    const [byItself] = newSpaceMib([''])
    const [thrifty, generous] = newSpaceMib(['thrifty', 'generous'])
    expect(thrifty).toBeLessThan(byItself / 4)
    expect(generous).toBeGreaterThan(4 * thrifty)
  })
  /** @type {[how: 'thrifty' | 'generous', loopRatio: number, next: string][]} */
  const TURNS = [
    ['thrifty', 0.09, 'thrifty'],
    ['thrifty', 0.1, 'generous'],
    ['generous', 0.06, 'generous'],
    ['generous', 0.05, 'thrifty']
  ]
  it.each(TURNS)('%s with a loop busy by %d becomes %s', (how, loopRatio, expected) => {
    expect(nextThrift(how, loopRatio)).toBe(expected)
  })
})
