'use strict'

// V8's own GC callbacks by the addon, and nothing else.
const { countGcs } = require('../../../allocator')
countGcs()
