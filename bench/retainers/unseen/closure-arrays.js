'use strict'

const { run } = require('./common')
const handlers = []
function makeHandler (n) {
  const table = Array.from({ length: 2000 }, (_, i) => i * n + 0.5)
  return function handle (x) { return table[x % table.length] }
}
run(n => { handlers.push(makeHandler(n)) }, 300)
setInterval(() => handlers.reduce((sum, handle) => sum + handle(1), 0), 1000)
