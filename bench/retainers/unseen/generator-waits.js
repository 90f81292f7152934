'use strict'

const { numbers, run } = require('./common')
const subscriptions = new Set()
async function * changes (n) {
  const window = numbers(n, 300)
  while (true) {
    yield window[0]
    window.push(n)
  }
}
run(n => { const feed = changes(n); feed.next(); subscriptions.add(feed) }, 800)
setInterval(() => subscriptions.size, 1000)
