'use strict'

const diagnostics = require('node:diagnostics_channel')

/** Channel with a message for each connection that a server accepts, by TCP or a pipe. */
const ACCEPTED = 'net.server.socket'

/**
 * Connections that servers of this isolate accepted: they show that the app has clients. Active
 * resources do not show all servers, such as those on a Unix socket or of node:cluster.
 *
 * @param {{ subscribe?: typeof diagnostics.subscribe, unsubscribe?: typeof diagnostics.unsubscribe
 *   }} [dependencies] functions of Node 18.7+
 * @returns {import('./collector').Collector}
 */
function connections ({
  subscribe = diagnostics.subscribe,
  unsubscribe = diagnostics.unsubscribe
} = {}) {
  const isKnown = typeof subscribe === 'function'
  let accepted = 0
  const count = () => { accepted++ }
  return {
    fields: ['connectionsAccepted'],
    start () {
      subscribe?.(ACCEPTED, count)
    },
    read (values) {
      if (isKnown) values.connectionsAccepted = accepted
    },
    stop () {
      unsubscribe?.(ACCEPTED, count)
    }
  }
}

module.exports = { connections }
