'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  title: 'AbortSignal.any() with a signal that lives long',
  source: 'https://github.com/nodejs/node/issues/55351',
  leaky: { packages: {}, node: '22.9.0' },
  fixed: { packages: {}, node: '22.23.3' },
  expect: ['js-heap-leak'],
  culprit: /handle|any\b|abort/,
  load: '16,000 signals a second',
  app ({ perSecond }) {
    const shutdown = new AbortController()
    const handle = () => AbortSignal.any([shutdown.signal])
    perSecond(16_000, handle)
  }
}
