'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: {}, node: '24.17.0' },
  fixed: { packages: {}, node: '24.15.0' },
  expect: ['native-memory-leak'],
  culprit: /upload|Blob|blob/,
  load: '60 bodies of 50 kB a second',
  app ({ perSecond }) {
    const body = Buffer.alloc(50_000, 7)
    const upload = () => new Response(new Blob([body]).stream()).arrayBuffer()
    perSecond(60, upload)
  }
}
