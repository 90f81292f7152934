'use strict'

/** Exits on a Node.js that is too old for the command. Old versions can parse this file. */

/** @returns {boolean} */
function hasTracingChannels () {
  try {
    // fastify needs this function of Node.js 18.19 and 19.9.
    return typeof require('diagnostics_channel').tracingChannel === 'function'
  } catch (_) {
    return false
  }
}

if (!hasTracingChannels()) {
  const floor = require('../package.json').engines.node.replace(/^>=/, '')
  require('./output').err.say(
    `memwatch needs Node.js ${floor} or later (this is ${process.versions.node}). ` +
      'The agent runs on 18 and later'
  )
  process.exit(2)
}
