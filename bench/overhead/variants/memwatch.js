'use strict'

require('../../../agent')
const { begin } = require('../../../agent/begin')
const { readConfig } = require('../../../agent/protocol/config')
const { offerSwitch } = require('../switch')

let agent = /** @type {any} */ (globalThis)[Symbol.for('memwatch.agent')]
offerSwitch({
  on () { agent = begin(readConfig(), () => {}) },
  off: () => agent.stop()
})
