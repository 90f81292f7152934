'use strict'

// The agent, which refuses the profiles that the exporter starts by itself.
process.env.MEMWATCH_CAPTURES = 'off'
require('./memwatch')
