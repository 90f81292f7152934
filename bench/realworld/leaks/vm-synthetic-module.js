'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: {
    packages: {}, node: '20.3.0', env: { NODE_OPTIONS: '--experimental-vm-modules --no-warnings' }
  },
  fixed: {
    packages: {}, node: '22.23.3', env: { NODE_OPTIONS: '--experimental-vm-modules --no-warnings' }
  },
  expect: ['js-heap-leak'],
  culprit: /load|SyntheticModule|vm/,
  load: '1,000 modules a second',
  app ({ perSecond }) {
    const vm = require('node:vm')
    async function load (n) {
      const module = new vm.SyntheticModule(['x'], function () { this.setExport('x', n) })
      await module.link(() => {})
      await module.evaluate()
    }
    perSecond(1000, load)
  }
}
