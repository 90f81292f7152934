'use strict'

/**
 * Addresses of the bench's own network namespace, whose loopback interface has all of 192.0.2.0/24
 * (RFC 5737): for the exporter these are other machines, as they are not loopback addresses.
 */
const NETWORK = '192.0.2.1/24'
const EXPORTER = '192.0.2.10'
const KUBELET = '192.0.2.1'
const PROMETHEUS = '192.0.2.2'
const OPERATOR = '192.0.2.3'
const ATTACKER = '192.0.2.66'
const LOOPBACK = '127.0.0.1'
/** No other program listens in that namespace, so the chart's port is free. */
const PORT = 16369

module.exports = { NETWORK, EXPORTER, KUBELET, PROMETHEUS, OPERATOR, ATTACKER, LOOPBACK, PORT }
