'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  title: '@napi-rs/canvas leaks a canvas that is drawn onto another',
  source: 'https://github.com/Brooooooklyn/canvas/issues/1222',
  leaky: { packages: { '@napi-rs/canvas': '0.1.95' } },
  fixed: { packages: { '@napi-rs/canvas': '0.1.96' } },
  expect: ['native-memory-leak'],
  culprit: null,
  load: '10 canvases a second',
  limitMib: 1024,
  app ({ perSecond }) {
    const { createCanvas } = require('@napi-rs/canvas')
    perSecond(10, () => {
      const layer = createCanvas(256, 256)
      layer.getContext('2d').fillRect(0, 0, 9, 9)
      createCanvas(300, 300).getContext('2d').drawImage(layer, 0, 0)
    })
  }
}
