'use strict'

// Each subscriber of a ticker gets a stream of prices, and adds a listener to the shared feed. When
// the subscriber leaves, its stream ends. The listener stays, with all objects of its closure.
// `--fixed` removes the listener.
const { EventEmitter } = require('node:events')
const { PassThrough } = require('node:stream')
const { appRun } = require('../app-run')
const { withJobs } = require('../with-jobs')

const feed = new EventEmitter()
const run = appRun({
  work: 'subscribers',
  figures: () => ({ listeners: feed.listenerCount('price') })
})

/** @param {number} number */
async function subscribe (number) {
  const stream = new PassThrough({ objectMode: true })
  const history = Array.from({ length: 200 }, (_, i) => ({
    at: i,
    price: number + i,
    label: `${number}-${i}`
  }))
  let wanted = 3
  /** @param {number} price */
  const onPrice = (price) => {
    if (wanted > 0 && price > 0) history[price % history.length].price = price
  }
  feed.on('price', onPrice)
  stream.on('data', () => { wanted-- })
  for (let i = 0; i < 3; i++) stream.write({ i })
  await new Promise((resolve) => setTimeout(resolve, 20))
  stream.destroy()
  if (run.fixed) feed.off('price', onPrice)
}

setInterval(() => feed.emit('price', 1 + Math.floor(Math.random() * 100)), 1000)
withJobs(run, { perSecond: 120, job: subscribe })
