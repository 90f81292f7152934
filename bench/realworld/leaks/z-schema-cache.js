'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: { 'z-schema': '3.18.3' } },
  fixed: { packages: { 'z-schema': '3.18.4' } },
  expect: ['js-heap-leak'],
  culprit: /z-schema|check/,
  load: '2,000 validations a second, the schema written in the call',
  limitMib: 1024,
  app ({ perSecond }) {
    const ZSchema = require('z-schema')
    const validator = new ZSchema()
    function check (n) {
      return validator.validate({ id: n, name: 'tea' }, {
        type: 'object',
        required: ['id', 'name'],
        properties: { id: { type: 'integer' }, name: { type: 'string', maxLength: 40 } }
      })
    }
    perSecond(2000, check)
  }
}
