'use strict'

const path = require('node:path')

/**
 * Address that agents connect to: a Unix socket or a loopback TCP port.
 * @typedef {{ path: string } | { host: string, port: number }} Address
 */

/**
 * @param {string} text a path, or tcp://HOST:PORT
 * @returns {Address}
 * @throws {Error} names the mistake in the text
 */
function parseAddress (text) {
  if (!text.startsWith('tcp://')) {
    // sun_path holds 108 bytes with its final NUL (unix(7)). Node would truncate a longer path or
    // fail with EINVAL.
    if (Buffer.byteLength(path.resolve(text)) > 107) {
      throw new Error(`the socket path is longer than 107 bytes: ${text}`)
    }
    return { path: path.resolve(text) }
  }
  return parseHostPort(text.slice('tcp://'.length))
}

/**
 * @param {string} text HOST:PORT, an IPv6 host in brackets
 * @returns {{ host: string, port: number }}
 * @throws {Error} names the mistake in the text
 */
function parseHostPort (text) {
  const match = /^(\[[0-9a-fA-F:.]+\]|[^:[\]\s]+):(\d{1,5})$/.exec(text)
  if (!match || Number(match[2]) > 65535) {
    throw new Error(
      'expected HOST:PORT such as 127.0.0.1:16369, with a port up to 65535, got ' +
        JSON.stringify(text)
    )
  }
  return { host: match[1].replace(/^\[|\]$/g, ''), port: Number(match[2]) }
}

/**
 * @param {Address} address
 * @returns {string} in the form that parseAddress reads
 */
function formatAddress (address) {
  if ('path' in address) return address.path
  return `tcp://${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`
}

module.exports = { parseAddress, parseHostPort, formatAddress }
