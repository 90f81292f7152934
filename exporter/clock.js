'use strict'

const { performance } = require('node:perf_hooks')

/**
 * Unix time in milliseconds that never jumps: the wall clock at the start of this process, plus the
 * monotonic clock since. Setting the clock must not make targets look silent.
 */
const steadyUnixMs = () => performance.timeOrigin + performance.now()

module.exports = { steadyUnixMs }
