'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: { '@napi-rs/canvas': '0.1.70' } },
  fixed: { packages: { '@napi-rs/canvas': '0.1.96' } },
  expect: ['native-memory-leak'],
  culprit: null,
  load: '10 patterns a second',
  limitMib: 1024,
  app ({ perSecond }) {
    const { createCanvas } = require('@napi-rs/canvas')
    const tile = createCanvas(256, 256)
    tile.getContext('2d').fillRect(0, 0, 100, 100)
    perSecond(10, () => {
      const context = createCanvas(300, 300).getContext('2d')
      context.fillStyle = context.createPattern(tile, 'repeat')
      context.fillRect(0, 0, 300, 300)
    })
  }
}
