'use strict'

/** Text for the default path of the socket, equal on every machine. */
const DEFAULT_SOCKET = 'memwatch-UID/exporter.sock in the temporary directory'

module.exports = { DEFAULT_SOCKET }
