'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: { arktype: '2.1.29' }, label: 'arktype 2.1.29, a type for each request' },
  fixed: { packages: { arktype: '2.1.29' }, label: 'arktype 2.1.29, one type' },
  expect: ['js-heap-leak'],
  culprit: /ark|check/,
  load: '100 types a second',
  limitMib: 2048,
  async app ({ fixed, perSecond }) {
    const { type } = await import('arktype')
    const make = n => type({ id: 'number', [`field${n}`]: 'string' })
    const shared = make(0)
    const check = n => (fixed ? shared : make(n))({ id: n, [`field${n}`]: 'tea' })
    perSecond(100, check)
  }
}
