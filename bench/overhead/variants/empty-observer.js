'use strict'

// An observer without work: the minimum cost of observing GCs in JavaScript.
const { PerformanceObserver } = require('node:perf_hooks')
const { offerSwitch } = require('../switch')

const observer = new PerformanceObserver(() => {})
const on = () => observer.observe({ type: 'gc' })
on()
offerSwitch({ on, off: () => observer.disconnect() })
