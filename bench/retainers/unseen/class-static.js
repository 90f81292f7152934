'use strict'

const { numbers, run } = require('./common')
class Connection {
  static open = new Map()
  constructor (n) {
    this.n = n
    this.backlog = numbers(n, 300)
    Connection.open.set(n, this)
  }

  close () { Connection.open.delete(this.n) }
}
run(n => { new Connection(n) }, 800) // eslint-disable-line
