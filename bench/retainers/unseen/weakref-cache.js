'use strict'

const { run } = require('./common')
const byUrl = new Map()
run(n => { byUrl.set('https://shop.example/' + n + '?' + 'q'.repeat(200) + n, new WeakRef({ n })) }, 4000)
setInterval(() => byUrl.size, 1000)
