'use strict'

// The agent without access to V8's callbacks.
process.env.MEMWATCH_GC_HOOKS = 'off'
require('./memwatch')
