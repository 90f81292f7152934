'use strict'

const registry = require('request-registry')
const { numbers, run } = require('./common')
class Request { constructor (n) { this.url = '/orders/' + n; this.headers = { host: 'shop' + n, n }; this.body = numbers(n, 200) } }
run(n => { registry.begin(new Request(n)) }, 1000)
