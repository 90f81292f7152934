'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: { msgpackr: '1.11.5' }, label: 'msgpackr 1.11.5' },
  fixed: { packages: { msgpackr: '1.11.5' }, label: 'msgpackr 1.11.5, copyBuffers' },
  expect: ['native-memory-leak', 'buffer-pool-pinning'],
  culprit: /msgpackr|receive/,
  load: '40 messages of 64 kB a second, 16 bytes of each are kept',
  limitMib: 1024,
  app ({ fixed, perSecond }) {
    const { Packr } = require('msgpackr')
    const packr = new Packr({ copyBuffers: fixed })
    const seen = []
    const wire = packr.pack({ id: Buffer.alloc(16, 1), body: Buffer.alloc(64_000, 2) })
    function receive () {
      seen.push(packr.unpack(Buffer.from(wire)).id)
      if (seen.length > 50_000) seen.shift()
    }
    perSecond(40, receive)
  }
}
