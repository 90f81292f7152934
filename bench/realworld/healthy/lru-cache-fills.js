'use strict'

/** @type {Partial<import('../cases').Healthy>} */
module.exports = {
  title: 'an lru-cache that fills to 200 MiB and stays there',
  packages: { 'lru-cache': '11.2.2' },
  limitMib: 1024,
  seconds: 240,
  load: '2 MiB a second for 100 s, then as much replaced as added',
  app ({ perSecond, payload }) {
    const { LRUCache } = require('lru-cache')
    const cache = new LRUCache({ max: 25_600 })
    perSecond(256, n => cache.set(`page ${n}`, payload(8192, n)))
  }
}
