'use strict'

// The least that anybody pays who observes GCs in JavaScript.
const { PerformanceObserver } = require('node:perf_hooks')

new PerformanceObserver(() => {}).observe({ type: 'gc' })
