'use strict'

const dns = require('node:dns')
const net = require('node:net')
const { clearTimeout, nextTick, readFileSync, setTimeout } = require('./primordials')

/** Limit of a lookup, below the transport's CONNECT_TIMEOUT_MS. */
const TIMEOUT_MS = 400

/**
 * Address of a name in a hosts file. hosts(5).
 * @param {string} hosts
 * @param {string} name
 * @returns {string | undefined}
 */
function addressInHosts (hosts, name) {
  for (const line of hosts.split('\n')) {
    const [address, ...names] = line.replace(/#.*/, '').trim().split(/\s+/)
    if (net.isIP(address) && names.includes(name)) return address
  }
}

/**
 * Resolves a name for net.connect by the hosts file, then DNS, without search domains. The
 * thread of dns.lookup cannot be cancelled: an app would wait for it even in process.exit.
 * @param {string} name
 * @param {object} _options
 * @param {(error: Error | null, address: string, family: number) => void} callback
 * @param {{ read?: (file: string) => string }} [dependencies]
 */
function lookup (name, _options, callback, { read = file => readFileSync(file, 'utf8') } = {}) {
  let known
  try {
    known = addressInHosts(read('/etc/hosts'), name)
  } catch {} // absent, or denied by the permission model
  known ??= name === 'localhost' ? '127.0.0.1' : undefined
  if (known !== undefined) return nextTick(callback, null, known, net.isIP(known))

  const resolver = new dns.Resolver({ timeout: TIMEOUT_MS, tries: 1 })
  const timer = setTimeout(() => resolver.cancel(), TIMEOUT_MS)
  resolver.resolve4(name, (error4, [address4] = []) => {
    if (address4 !== undefined || error4?.code !== dns.NODATA) {
      clearTimeout(timer)
      return callback(error4, address4, 4)
    }
    resolver.resolve6(name, (error6, [address6] = []) => {
      clearTimeout(timer)
      callback(error6, address6, 6)
    })
  })
}

module.exports = { lookup, addressInHosts }
