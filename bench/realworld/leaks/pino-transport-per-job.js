'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: { pino: '9.14.0' }, label: 'pino 9.14.0, transport() for each job' },
  fixed: { packages: { pino: '9.14.0' }, label: 'pino 9.14.0, one transport' },
  expect: ['resource-leak'],
  culprit: null,
  load: '0.7 jobs a second',
  limitMib: 2048,
  app ({ fixed, perSecond }) {
    const pino = require('pino')
    const open = () => pino.transport({
      target: 'pino/file', options: { destination: '/dev/null' }
    })
    const shared = open()
    perSecond(0.7, n => pino(fixed ? shared : open()).info({ n }, 'job'))
  }
}
