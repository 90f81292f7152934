'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: {}, node: '24.15.0' },
  fixed: { packages: {}, node: '24.21.0' },
  expect: ['js-heap-leak'],
  culprit: /handle|any\b|abort/,
  load: '1,000 signals a second, each ends after 50 ms',
  app ({ perSecond }) {
    const shutdown = new AbortController()
    const handle = () => AbortSignal.any([shutdown.signal, AbortSignal.timeout(50)])
    perSecond(1000, handle)
  }
}
