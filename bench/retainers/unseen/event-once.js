'use strict'

const { EventEmitter, once } = require('node:events'); const { numbers, run } = require('./common')
const gate = new EventEmitter(); gate.setMaxListeners(0)
async function handle (n) { const body = numbers(n, 200); await once(gate, 'ready'); return body.length }
run(n => { handle(n) }, 1000)
setInterval(() => gate.listenerCount('ready'), 1000)
