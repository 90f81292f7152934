'use strict'

// Preloaded before the agent: prints to stdout, between lines of --trace-gc, when the agent begins
// to count GCs.
const { writeSync } = require('node:fs')
const { PerformanceObserver } = require('node:perf_hooks')
const addon = require(`../../allocator/prebuilt/${process.platform}-${process.arch}.node`)

const mark = () => writeSync(1, 'COUNTED\n')
const { countGcs } = addon
const { observe } = PerformanceObserver.prototype

if (process.env.MEMWATCH_GC_HOOKS === 'off') {
  PerformanceObserver.prototype.observe = function (options) {
    observe.call(this, options)
    mark()
  }
} else {
  addon.countGcs = () => {
    const hooks = countGcs()
    mark()
    return hooks
  }
}
