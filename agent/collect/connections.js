'use strict'

const diagnostics = require('node:diagnostics_channel')

/** Published for each connection that a server accepts, TCP and pipes. */
const ACCEPTED = 'net.server.socket'

/**
 * Connections that servers of this isolate accepted: the app has clients. Its active resources do
 * not show all servers: those on a Unix socket are pipes, as stdout may be, and in a worker of
 * node:cluster the primary listens.
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
