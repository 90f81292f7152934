'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  title: 'snappy retains results in an allocator of its own',
  source: 'https://github.com/Brooooooklyn/snappy/issues/323',
  leaky: { packages: { snappy: '7.3.3' } },
  fixed: { packages: { snappy: '7.2.2' } },
  expect: ['native-memory-leak'],
  culprit: null,
  load: 'three times a second 4 MiB there and back',
  limitMib: 1024,
  app ({ perSecond }) {
    const snappy = require('snappy')
    const raw = Buffer.alloc(2 ** 22)
    for (let i = 0; i < raw.length; i += 64) raw.writeUInt32LE((i * 2654435761) >>> 0, i)
    perSecond(3, async () => {
      const packed = await snappy.compress(raw)
      await snappy.uncompress(packed, { asBuffer: true })
    })
  }
}
