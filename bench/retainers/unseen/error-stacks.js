'use strict'

const { numbers, run } = require('./common')
const failures = []
class OrderError extends Error { constructor (n) { super('order ' + n); this.order = { n, lines: numbers(n, 100) } } }
run(n => { failures.push(new OrderError(n)) }, 1000)
setInterval(() => failures.length, 1000)
