'use strict'

// An observer without work: the minimum cost of observing GCs in JavaScript.
const { PerformanceObserver } = require('node:perf_hooks')

new PerformanceObserver(() => {}).observe({ type: 'gc' })
