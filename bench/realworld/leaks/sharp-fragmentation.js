'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: { sharp: '0.34.5' }, label: 'sharp 0.34.5, glibc malloc' },
  fixed: {
    packages: { sharp: '0.34.5' },
    env: { LD_PRELOAD: 'libjemalloc.so.2' },
    label: 'sharp 0.34.5, jemalloc'
  },
  expect: ['allocator-fragmentation'],
  culprit: null,
  load: 'each 8 s 48 pictures, 12 at a time',
  limitMib: 1024,
  app () {
    const sharp = require('sharp')
    sharp.cache(false)
    const resize = () => {
      const width = 200 + Math.floor(Math.random() * 1800)
      return sharp({ create: { width, height: width, channels: 3, background: '#a35' } })
        .blur(1.5)
        .resize(Math.ceil(width / 3))
        .jpeg()
        .toBuffer()
    }
    async function wave () {
      for (let batch = 0; batch < 4; batch++) await Promise.all(Array.from({ length: 12 }, resize))
      setTimeout(wave, 8000)
    }
    wave()
  }
}
