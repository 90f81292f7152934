'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: {}, node: '22.23.3' },
  fixed: { packages: {}, node: '24.21.0' },
  expect: ['js-heap-leak'],
  culprit: /handle|run\b|AsyncLocalStorage|async_hooks/,
  load: '40 instances a second, with a request each',
  app ({ perSecond, payload }) {
    const { AsyncLocalStorage } = require('node:async_hooks')
    function handle (n) {
      const storage = new AsyncLocalStorage()
      storage.request = payload(8000, n)
      storage.run({ n }, () => storage.getStore())
    }
    perSecond(40, handle)
  }
}
