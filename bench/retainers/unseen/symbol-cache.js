'use strict'

const { numbers, run } = require('./common')
const kCache = Symbol('cache')
const app = { name: 'shop', [kCache]: {} }
function render (n) {
  const cache = app[kCache]
  return (cache['page ' + n] ??= { html: 'x' + n, parts: numbers(n, 300) })
}
run(render, 800)
setInterval(() => app[kCache], 1000)
