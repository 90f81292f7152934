'use strict'

const path = require('node:path')
const Sequencer = require('@jest/test-sequencer').default

/**
 * Suites that take over a minute, mostly waiting. In a clone without timings jest begins with the
 * largest files. A small file that takes long would then start last, and the run would wait for it
 * alone.
 */
const LONGEST = [
  'integration/lab',
  'integration/captures',
  'page/page',
  'lab/apps',
  'integration/attach',
  'cli/trace-gc',
  'exporter/flight',
  'integration/known-bugs',
  'engine/weeks',
  'integration/try'
].map(name => path.join(__dirname, '..', `${name}.test.js`))

/** Jest's order, with the longest suites first. */
module.exports = class LongestFirst extends Sequencer {
  /**
   * @override
   * @param {import('@jest/test-result').Test[]} tests
   */
  sort (tests) {
    const sorted = /** @type {import('@jest/test-result').Test[]} */ (super.sort(tests))
    const rank = (/** @type {import('@jest/test-result').Test} */ test) => {
      const at = LONGEST.indexOf(test.path)
      return at < 0 ? LONGEST.length : at
    }
    return sorted.sort((a, b) => rank(a) - rank(b))
  }
}
