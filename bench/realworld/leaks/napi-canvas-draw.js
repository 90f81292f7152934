'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: { '@napi-rs/canvas': '0.1.95' } },
  fixed: { packages: { '@napi-rs/canvas': '1.1.1' } },
  expect: ['native-memory-leak'],
  culprit: null,
  load: '8 canvases of 256 × 256 pixels a second, onto one',
  limitMib: 1024,
  app ({ perSecond }) {
    const { createCanvas } = require('@napi-rs/canvas')
    const context = createCanvas(800, 800).getContext('2d')
    perSecond(8, () => {
      const layer = createCanvas(256, 256)
      layer.getContext('2d').fillRect(0, 0, 9, 9)
      context.drawImage(layer, 0, 0)
    })
  }
}
