'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: { 'cls-hooked': '4.2.2' } },
  fixed: {
    packages: { 'cls-hooked': '4.2.2' }, label: 'cls-hooked 4.2.2, a context without a ' +
    'promise'
  },
  expect: ['js-heap-leak', 'context-leak'],
  culprit: /cls-hooked|answer/,
  load: '200 requests a second',
  app ({ fixed, perSecond, payload }) {
    const namespace = require('cls-hooked').createNamespace('shop')
    const answer = n => namespace.run(() => {
      const user = payload(6000, n)
      namespace.set('user', fixed ? user : Promise.resolve(user))
    })
    perSecond(200, answer)
  }
}
