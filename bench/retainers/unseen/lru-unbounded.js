'use strict'

const { LRU } = require('tiny-lru')
const { numbers, run } = require('./common')
const cache = new LRU()
run(n => { cache.set('user:' + n, { id: n, permissions: numbers(n, 200) }) }, 1000)
setInterval(() => cache.get('user:1'), 1000)
