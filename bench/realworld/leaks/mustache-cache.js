'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: { mustache: '4.2.0' } },
  fixed: { packages: { mustache: '4.2.0' }, label: 'mustache 4.2.0, without templateCache' },
  expect: ['js-heap-leak'],
  culprit: /mustache|render/,
  load: '300 mails a second, each from a text of its own',
  limitMib: 1024,
  app ({ fixed, perSecond }) {
    const mustache = require('mustache')
    if (fixed) mustache.templateCache = undefined
    const lines = Array.from({ length: 20 }, (_, i) => `{{name}} bought {{item${i}}} for ${i}`)
    const render = n => mustache.render(`Order ${n}: ${lines.join('; ')}`, { name: 'Ada' })
    perSecond(300, render)
  }
}
