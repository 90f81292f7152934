'use strict'

// V8's own GC callbacks by the addon, without the agent.
const { countGcs } = require('../../../allocator')
const { offerSwitch } = require('../switch')

let counter = countGcs()
offerSwitch({
  on () { counter = countGcs() },
  off: () => counter?.stop()
})
