'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: {}, node: '24.15.0' },
  fixed: { packages: {}, node: '24.21.0' },
  expect: ['js-heap-leak'],
  culprit: /handle|any\b|abort/,
  load: '4,000 signals a second',
  app ({ perSecond }) {
    const shutdown = new AbortController()
    const handle = () => AbortSignal.any([shutdown.signal])
    perSecond(4000, handle)
  }
}
