'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  title: 'results of zlib.gzip() wait for a GC that does not come',
  source: 'https://github.com/nodejs/node/issues/65600',
  leaky: { packages: {}, node: '24.17.0' },
  fixed: { packages: {}, node: '24.14.0' },
  expect: ['array-buffer-pile-up'],
  culprit: null,
  load: '200 bodies of 80 kB a second',
  app ({ perSecond }) {
    const { gzip } = require('node:zlib')
    const rows = Array.from({ length: 1500 }, (_, i) => ({ id: i, name: 'POST /x', tags: { i } }))
    const body = Buffer.from(JSON.stringify(rows))
    perSecond(200, () => gzip(body, () => {}))
  }
}
