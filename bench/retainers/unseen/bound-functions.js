'use strict'

const { numbers, run } = require('./common')
const retries = []
function send (payload) { return payload }
run(n => { retries.push(send.bind(null, { n, rows: numbers(n, 200) })) }, 1000)
setInterval(() => retries.length, 1000)
