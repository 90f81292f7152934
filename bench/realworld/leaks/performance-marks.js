'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: {}, label: 'any Node.js since 16.7' },
  fixed: { packages: {}, label: 'clearMarks(), clearMeasures()' },
  expect: ['js-heap-leak'],
  culprit: /poll|mark|measure|usertiming|performance/,
  load: '6,000 measures a second',
  node: '22.23.3',
  limitMib: 1024,
  app ({ fixed, perSecond }) {
    function poll () {
      performance.mark('poll begins')
      performance.measure('poll', 'poll begins')
      if (!fixed) return
      performance.clearMarks('poll begins')
      performance.clearMeasures('poll')
    }
    perSecond(6000, poll)
  }
}
