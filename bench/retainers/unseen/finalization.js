'use strict'

const { numbers, run } = require('./common')
const registry = new FinalizationRegistry(held => held.close?.())
const alive = new Set()
class Handle { constructor (n) { this.n = n } }
run(n => {
  const handle = new Handle(n)
  alive.add(handle)
  registry.register(handle, { n, log: numbers(n, 300) })
}, 800)
setInterval(() => alive.size + String(registry).length, 1000)
