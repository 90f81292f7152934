'use strict'

// V8's own GC callbacks by the addon, without the agent.
const { countGcs } = require('../../../allocator')
countGcs()
