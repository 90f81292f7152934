'use strict'

const { numbers, run } = require('./common')
const controller = new AbortController()
require('node:events').setMaxListeners(0, controller.signal)
run(n => { const call = { n, chunks: numbers(n, 200) }; controller.signal.addEventListener('abort', () => { call.chunks.length = 0 }) }, 1000)
setInterval(() => controller.signal.aborted, 1000)
