'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  title: 'resvg-js tells V8 nothing of its pictures, so that no GC frees them',
  source: 'https://github.com/thx/resvg-js/issues/216',
  leaky: { packages: { '@resvg/resvg-js': '2.6.2' } },
  fixed: { packages: { '@resvg/resvg-js': '2.7.0-alpha.2' } },
  expect: ['native-memory-leak', 'array-buffer-pile-up'],
  culprit: null,
  load: '10 pictures of 1 MB a second',
  limitMib: 2048,
  app ({ perSecond }) {
    const { Resvg } = require('@resvg/resvg-js')
    const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="512" height="512">' +
      '<rect width="512" height="512" fill="#a35"/><circle cx="256" cy="256" r="200"/></svg>'
    perSecond(10, () => new Resvg(svg).render().asPng())
  }
}
