'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: {}, node: '22.23.3' },
  fixed: { packages: {}, node: '24.21.0' },
  expect: ['js-heap-leak'],
  culprit: /handle|any\b|abort/,
  load: '500 requests a second, each aborted by its own signal',
  app ({ perSecond }) {
    const shutdown = new AbortController()
    function handle () {
      const own = new AbortController()
      const signal = AbortSignal.any([shutdown.signal, own.signal])
      signal.addEventListener('abort', () => {})
      own.abort()
    }
    perSecond(500, handle)
  }
}
