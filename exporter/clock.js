'use strict'

const { performance } = require('node:perf_hooks')

/**
 * Unix time in milliseconds that never jumps: the wall clock of when this process started, and the
 * monotonic clock since. How long somebody has been silent must not depend on who sets the clock
 * meanwhile.
 */
const steadyUnixMs = () => performance.timeOrigin + performance.now()

module.exports = { steadyUnixMs }
