'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: { winston: '3.19.0' }, label: 'winston 3.19.0, createLogger()' },
  fixed: { packages: { winston: '3.19.0' }, label: 'winston 3.19.0, child()' },
  expect: ['js-heap-leak'],
  culprit: /winston|answer/,
  load: '80 loggers a second',
  limitMib: 1024,
  app ({ fixed, perSecond, payload }) {
    const { Writable } = require('node:stream')
    const { createLogger, transports } = require('winston')
    const sink = new Writable({ write (chunk, encoding, done) { done() } })
    const transport = new transports.Stream({ stream: sink })
    const base = createLogger({ transports: [transport] })
    function answer (n) {
      const defaultMeta = { n, request: payload(16_000, n) }
      const log = fixed
        ? base.child({ n })
        : createLogger({ defaultMeta, transports: [transport] })
      log.info('begins')
    }
    perSecond(80, answer)
  }
}
