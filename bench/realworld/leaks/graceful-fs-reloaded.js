'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: { 'graceful-fs': '4.1.11' } },
  fixed: { packages: { 'graceful-fs': '4.2.11' } },
  expect: ['js-heap-leak'],
  culprit: /graceful-fs|reload/,
  load: 'loaded 40 times a second, as test runners do',
  node: '18.20.8',
  app ({ perSecond }) {
    // Clears the module cache like a test runner between test files.
    function reload () {
      for (const file of Object.keys(require.cache)) {
        if (!file.includes('graceful-fs')) continue
        const children = module.children
        children.splice(0, children.length)
        delete require.cache[file]
      }
      require('graceful-fs')
    }
    perSecond(40, reload)
  }
}
