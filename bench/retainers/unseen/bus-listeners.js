'use strict'

const { subscribe } = require('@acme/bus')
const { numbers, run } = require('./common')
class Basket { constructor (n) { this.n = n; this.lines = numbers(n, 300) } }
run(n => { const basket = new Basket(n); subscribe('order', message => { if (message === n) basket.lines.push(n) }) }, 800)
