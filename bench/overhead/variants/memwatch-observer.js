'use strict'

// The agent as it is where it cannot reach V8's callbacks.
process.env.MEMWATCH_GC_HOOKS = 'off'
require('../../../agent')
