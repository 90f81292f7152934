'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: { tiktoken: '1.0.22' }, label: 'tiktoken 1.0.22, without free()' },
  fixed: { packages: { tiktoken: '1.0.22' }, label: 'tiktoken 1.0.22, free()' },
  expect: ['native-memory-leak'],
  culprit: null,
  load: 'an encoder each second',
  limitMib: 2048,
  app ({ fixed, perSecond }) {
    const { get_encoding: getEncoding } = require('tiktoken')
    const kept = []
    perSecond(1, () => {
      const encoder = getEncoding('cl100k_base')
      encoder.encode('How many tokens are there in this sentence?')
      if (fixed) encoder.free()
      else kept.push(encoder)
    })
  }
}
