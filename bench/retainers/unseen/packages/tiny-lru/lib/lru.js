'use strict'
class LRU {
  constructor ({ max = Infinity } = {}) {
    this.max = max
    this.items = new Map()
    this.first = null
    this.last = null
  }

  set (key, value) {
    const item = { key, value, prev: this.last, next: null }
    if (this.last) this.last.next = item; else this.first = item
    this.last = item
    this.items.set(key, item)
    if (this.items.size <= this.max) return
    this.items.delete(this.first.key)
    this.first = this.first.next
  }

  get (key) { return this.items.get(key)?.value }
}
module.exports = { LRU }
