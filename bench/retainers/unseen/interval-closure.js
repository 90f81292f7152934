'use strict'

const { numbers, run } = require('./common')
let record
function start () {
  const samples = []
  record = n => samples.push({ at: n, values: numbers(n, 100) })
  setInterval(() => { if (samples.length < 0) samples.pop() }, 1000)
}
start()
run(n => record(n), 2000)
