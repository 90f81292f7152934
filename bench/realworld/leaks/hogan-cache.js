'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: { 'hogan.js': '3.0.2' } },
  fixed: { packages: { 'hogan.js': '3.0.2' }, label: 'hogan.js 3.0.2, cache dropped' },
  expect: ['js-heap-leak'],
  culprit: /hogan|render/,
  load: '1,000 texts a second, each of its own',
  limitMib: null,
  app ({ fixed, perSecond }) {
    const hogan = require('hogan.js')
    function render (n) {
      if (fixed) hogan.cache = {}
      const text = `Order ${n}: {{name}} bought {{#items}}{{title}}, {{/items}} on {{day}}`
      return hogan.compile(text).render({ name: 'Ada', items: [{ title: 'tea' }], day: n })
    }
    perSecond(1000, render)
  }
}
