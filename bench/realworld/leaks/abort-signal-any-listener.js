'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: {}, node: '20.20.2' },
  fixed: { packages: {}, node: '24.21.0' },
  expect: ['js-heap-leak'],
  culprit: /handle|any\b|abort/,
  load: '1,000 signals a second',
  app ({ perSecond }) {
    function handle () {
      const signal = AbortSignal.any([new AbortController().signal])
      signal.addEventListener('abort', () => {})
    }
    perSecond(1000, handle)
  }
}
