'use strict'

const fs = require('node:fs')
const timers = require('node:timers')
const { performance } = require('node:perf_hooks')

/**
 * Functions of Node.js and of the language, captured at preload. An app, a test framework or a
 * polyfill may replace them later: fake timers would count the agent's timers as the app's and
 * fire them by hand, and a `setTimeout` that returns a number has no `unref`. The agent uses only
 * these, and reads none of them from `globalThis`; a lint rule holds that.
 */
module.exports = Object.freeze({
  setTimeout: timers.setTimeout,
  clearTimeout: timers.clearTimeout,
  setInterval: timers.setInterval,
  clearInterval: timers.clearInterval,
  setImmediate: timers.setImmediate,
  clearImmediate: timers.clearImmediate,
  /** Milliseconds since the isolate started. @type {() => number} */
  nowMs: performance.now.bind(performance),
  /** @type {typeof performance.eventLoopUtilization} */
  eventLoopUtilization: performance.eventLoopUtilization.bind(performance),
  /** Wall clock, in milliseconds since 1970. */
  nowUnixMs: Date.now,
  parseJson: JSON.parse,
  stringifyJson: JSON.stringify,
  openSync: fs.openSync,
  closeSync: fs.closeSync,
  readSync: fs.readSync,
  writeSync: fs.writeSync,
  fstatSync: fs.fstatSync,
  lstatSync: fs.lstatSync,
  readFileSync: fs.readFileSync
})
