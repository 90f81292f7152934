'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: { '@node-rs/crc32': '1.5.1' } },
  fixed: { packages: { '@node-rs/crc32': '1.10.6' } },
  expect: ['native-memory-leak', 'js-heap-leak'],
  culprit: null,
  load: '15,000 checksums a second',
  app ({ perSecond }) {
    const { crc32c } = require('@node-rs/crc32')
    const bytes = Buffer.alloc(1000, 3)
    perSecond(15_000, () => crc32c(bytes))
  }
}
