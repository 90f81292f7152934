'use strict'

const { run } = require('./common')
const shutdown = new Promise(() => {})
async function work (n) {
  const rows = Array.from({ length: 300 }, (_, i) => ({ n, i }))
  await new Promise(resolve => setImmediate(resolve))
  return rows
}
run(n => { Promise.race([work(n), shutdown]).then(rows => rows.length) }, 800)
setInterval(() => shutdown, 1000)
