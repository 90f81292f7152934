'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: { ajv: '8.17.1' }, label: 'ajv 8.17.1, a schema object for each request' },
  fixed: { packages: { ajv: '8.17.1' }, label: 'ajv 8.17.1, one schema object' },
  expect: ['js-heap-leak'],
  culprit: /ajv|check/,
  load: '200 requests a second',
  limitMib: null,
  app ({ fixed, perSecond }) {
    const Ajv = require('ajv')
    const ajv = new Ajv()
    const schema = () => ({
      type: 'object',
      required: ['id', 'name'],
      properties: { id: { type: 'integer' }, name: { type: 'string' }, tags: { type: 'array' } }
    })
    const shared = schema()
    const check = n => ajv.compile(fixed ? shared : schema())({ id: n, name: 'tea' })
    perSecond(200, check)
  }
}
