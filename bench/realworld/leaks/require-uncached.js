'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: { 'require-uncached': '1.0.2', semver: '7.7.2' } },
  fixed: { packages: { 'require-uncached': '1.0.3', semver: '7.7.2' } },
  expect: ['js-heap-leak'],
  culprit: /require-uncached|reload|semver/,
  load: '150 times a second a module of 20 kB',
  app ({ perSecond }) {
    const requireUncached = require('require-uncached')
    const reload = () => requireUncached('semver/internal/re.js')
    perSecond(150, reload)
  }
}
