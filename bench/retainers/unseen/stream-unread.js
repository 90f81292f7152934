'use strict'

const { PassThrough } = require('node:stream'); const { numbers, run } = require('./common')
const audit = new PassThrough({ objectMode: true, highWaterMark: 1e9 })
run(n => { audit.write({ n, fields: numbers(n, 200) }) }, 1000)
setInterval(() => audit.writableLength, 1000)
