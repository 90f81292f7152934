'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: {}, node: '20.3.0' },
  fixed: { packages: {}, node: '22.23.3' },
  expect: ['js-heap-leak'],
  culprit: /load|compileFunction|vm/,
  load: '200 functions a second',
  app ({ perSecond }) {
    const vm = require('node:vm')
    const body = `const rows = ${JSON.stringify(Array.from({ length: 300 }, (_, i) => i))}; return `
    function load (n) {
      const importModuleDynamically = async () => ({})
      return vm.compileFunction(`${body}${n}`, [], { importModuleDynamically })()
    }
    perSecond(200, load)
  }
}
