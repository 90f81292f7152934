'use strict'

const fs = require('node:fs')

const LISTENS = '0A'
/**
 * Addresses to connect to, by the hexadecimal form in /proc/PID/net. The loopback address replaces
 * an unspecified address.
 */
const ADDRESSES = Object.freeze(/** @type {Record<string, string>} */ ({
  '00000000': '127.0.0.1',
  ['0'.repeat(32)]: '::1',
  '00000000000000000000000001000000': '::1'
}))

/**
 * @typedef {object} Listener a TCP socket that accepts connections
 * @property {string} host
 * @property {number} port
 * @property {boolean} isOwn true for a socket of the process itself
 * @property {string} inode
 */

/**
 * @param {number} pid
 * @returns {Listener[]} listeners in its network namespace
 */
function listenersAround (pid) {
  const own = new Set()
  try {
    for (const fd of fs.readdirSync(`/proc/${pid}/fd`)) {
      try {
        own.add(/^socket:\[(\d+)\]$/.exec(fs.readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1])
      } catch {} // The descriptor was closed meanwhile.
    }
  } catch {} // The process has ended.
  return ['tcp', 'tcp6'].flatMap(table => {
    let lines
    try {
      lines = fs.readFileSync(`/proc/${pid}/net/${table}`, 'latin1').split('\n').slice(1)
    } catch {
      return [] // The process has ended, or there is no IPv6.
    }
    return lines.map(line => line.trim().split(/\s+/))
      .filter(([, , , state]) => state === LISTENS)
      .map(fields => {
        const [address, port] = fields[1].split(':')
        const inode = fields[9]
        return { host: hostOf(address), port: parseInt(port, 16), isOwn: own.has(inode), inode }
      })
  })
}

/** @param {string} address address as the kernel prints it: words in the machine's byte order */
const hostOf = address =>
  ADDRESSES[address] ??
    (address.length === 8
      ? [...Buffer.from(address, 'hex').reverse()].join('.')
      : ipv6Of(address))

/** @param {string} address */
function ipv6Of (address) {
  const bytes = Buffer.from(address, 'hex').swap32()
  return Array.from({ length: 8 }, (_, i) => bytes.readUInt16BE(2 * i).toString(16)).join(':')
}

module.exports = { listenersAround }
