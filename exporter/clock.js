'use strict'

const { performance } = require('node:perf_hooks')

/**
 * Unix time in milliseconds that never jumps: the wall clock at the start of this process, plus the
 * monotonic time since. If somebody sets the wall clock, targets must not look silent.
 */
const steadyUnixMs = () => performance.timeOrigin + performance.now()

module.exports = { steadyUnixMs }
