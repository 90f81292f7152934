'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  title: 'jsdom: each document of a DOMParser stays',
  source: 'https://github.com/jsdom/jsdom/issues/2722',
  leaky: { packages: { jsdom: '13.2.0' } },
  fixed: { packages: { jsdom: '15.2.1' } },
  expect: ['js-heap-leak'],
  culprit: /jsdom|parse/,
  load: '40 documents a second',
  node: '20.20.2',
  limitMib: 1024,
  app ({ perSecond }) {
    const { JSDOM } = require('jsdom')
    const { window } = new JSDOM('<p>feed</p>')
    const items = Array.from({ length: 10 }, (_, i) => `<li id="i${i}">item ${i}</li>`).join('')
    const parser = new window.DOMParser()
    const parse = () => parser.parseFromString(`<ul>${items}</ul>`, 'text/html')
    perSecond(40, parse)
  }
}
