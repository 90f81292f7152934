'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: { zod: '4.1.7' } },
  fixed: { packages: { zod: '4.1.8' } },
  expect: ['js-heap-leak'],
  culprit: /zod|describeTool/,
  load: '60 schemas a second, as agents make for their tools',
  app ({ perSecond }) {
    const { z } = require('zod')
    const describeTool = n => z.object({
      id: z.string().describe('the order'), amount: z.number().describe('in cents')
    }).describe(`tool ${n}`)
    perSecond(60, describeTool)
  }
}
