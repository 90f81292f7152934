'use strict'

/** Path of the socket unless one is set, the same on every machine. */
const DEFAULT_SOCKET = 'memwatch-UID/exporter.sock in the temporary directory'

module.exports = { DEFAULT_SOCKET }
