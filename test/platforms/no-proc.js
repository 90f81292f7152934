'use strict'

const assert = require('node:assert')
const { fetchNode } = require('../../scripts/fetch-node')
const { ROOT } = require('./glibc')
const { whyNoRooms, withoutProc } = require('./rooms')
const { simulate, tellFacts } = require('./tried')

const NODES = ['20.20.2', '24.21.0']
/**
 * RSS is unknown, because libuv reads it from /proc. Diagnoses that need it stay undecided, and say
 * so.
 */
const NEEDS_RSS = [
  'native-memory-leak', 'allocator-fragmentation', 'container-limit-mismatch', 'oversized-heap'
]

/** @param {ReturnType<typeof import('./tried').read>} told */
function checkUnknown ({ states, summaries, parts }) {
  for (const id of NEEDS_RSS) {
    assert.deepStrictEqual([id, states[id]], [id, 'unknown'])
    assert.match(summaries[id], /\/proc/)
  }
  assert.deepStrictEqual(parts, {}, 'RSS is taken apart, though it cannot be read')
}

/** @type {import('./run').Platform} */
const noProc = {
  title: 'no /proc',
  missing: whyNoRooms,
  nodes: NODES,
  cases: () => NODES.flatMap(version => {
    const place = withoutProc({ node: fetchNode(version), root: ROOT })
    return [
      {
        title: 'the agent alone reports V8 and the event loop, but no RSS, allocator or container',
        node: version,
        async test () {
          const { hello, fields, known } = await tellFacts(place)
          assert.deepStrictEqual([hello.libc, hello.allocator], ['unknown', 'unknown'])
          assert.deepStrictEqual(
            [...fields].filter(name => /^(rss|container|memoryPressure|resident)/.test(name)), []
          )
          return known
        }
      },
      {
        title: 'js-heap-leak-jobs: found; checks that need RSS are unknown',
        node: version,
        async test () {
          checkUnknown(await simulate(place, 'js-heap-leak-jobs', 'js-heap-leak'))
        }
      },
      {
        title: 'native-memory-leak: nothing is found; checks that need RSS are unknown',
        node: version,
        async test () {
          checkUnknown(await simulate(place, 'native-memory-leak'))
        }
      },
      {
        title: 'healthy-steady: no memory problem is confirmed',
        node: version,
        async test () {
          checkUnknown(await simulate(place, 'healthy-steady'))
        }
      }
    ]
  })
}

module.exports = { noProc, checkUnknown }
