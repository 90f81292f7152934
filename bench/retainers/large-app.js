'use strict'

// An app with a large heap that leaks into a Map, and writes its heap snapshot.
//
//   node large-app.js FILE ORDERS

const v8 = require('node:v8')

const [, , file, orders] = process.argv
const carts = new Map()

class Order {
  constructor (n) {
    this.id = `order-${n}`
    this.customer = { id: n % 5000, name: `customer ${n % 5000}`, tags: ['new', `t${n % 7}`] }
    this.lines = Array.from({ length: 3 }, (_, line) => ({ line, price: n + line / 3, note: `n${n}` }))
    this.next = () => this.id
  }
}

for (let n = 0; n < Number(orders); n++) carts.set(`cart ${n}`, new Order(n))
// Without a later use V8 would free the Map during the snapshot.
module.exports = { findCart: n => carts.get(n) }
v8.writeHeapSnapshot(file)
