'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: { 'stealthy-require': '1.0.0', semver: '7.7.2' } },
  fixed: { packages: { 'stealthy-require': '1.1.0', semver: '7.7.2' } },
  expect: ['js-heap-leak'],
  culprit: /stealthy-require|reload|semver/,
  load: '60 times a second semver and what it needs',
  limitMib: null,
  app ({ perSecond }) {
    const stealthyRequire = require('stealthy-require')
    const reload = () => stealthyRequire(require.cache, () => require('semver/classes/range.js'))
    perSecond(60, reload)
  }
}
