'use strict'

const { AsyncLocalStorage } = require('node:async_hooks')
const { numbers, run } = require('./common')
const context = new AsyncLocalStorage()
const waiting = []
function handle (n) {
  const store = { requestId: n, user: { name: 'u' + n }, rows: numbers(n, 400) }
  context.run(store, async () => {
    await new Promise(resolve => waiting.push(resolve))
    context.getStore()
  })
}
run(handle, 800)
setInterval(() => waiting.length, 1000)
