'use strict'

const fs = require('node:fs')
const path = require('node:path')

const AGENT = path.join(__dirname, '../agent') + path.sep
/** Functions of Node.js that run for each observed GC. */
const OBSERVING = /^node:internal\/perf\/(observe|performance_entry)$/
const INTERVAL_MICROS = 250
/** Time at the start that is left out, because loading is not a permanent cost. */
const START_SECONDS = 3

/**
 * Options with which Node.js writes a CPU profile at its end.
 * @param {string} folder
 * @returns {string[]}
 */
const profileFlags = folder => [
  '--cpu-prof',
  '--cpu-prof-dir',
  folder,
  '--cpu-prof-interval',
  String(INTERVAL_MICROS)
]

/**
 * Owners of the main thread's time, by a CPU profile. Differences between runs cannot show these
 * shares, as they are smaller than the noise between equal runs. Time in which the app waited is
 * omitted.
 * @param {string} folder with one .cpuprofile
 * @returns {{ agent: number, observing: number }} shares; observing: the part of Node.js, without
 *   that of the agent
 */
function shareOf (folder) {
  const [name] = fs.readdirSync(folder)
  const { nodes, samples, timeDeltas } = JSON.parse(
    fs.readFileSync(path.join(folder, name), 'utf8')
  )
  /** @type {Map<number, 'agent' | 'observing' | 'idle' | 'app'>} */
  const owners = new Map()
  const byId = new Map(nodes.map((/** @type {any} */ node) => [node.id, node]))
  /**
   * @param {any} node
   * @param {'agent' | 'observing' | 'app'} above owner of the calling code
   */
  const visit = (node, above) => {
    const { url, functionName } = node.callFrame
    const own = url.replace('file://', '').startsWith(AGENT)
      ? 'agent'
      : above !== 'agent' && OBSERVING.test(url)
        ? 'observing'
        : above
    owners.set(node.id, functionName === '(idle)' ? 'idle' : own)
    for (const id of node.children ?? []) visit(byId.get(id), own)
  }
  visit(nodes[0], 'app')
  const seen = { agent: 0, observing: 0, idle: 0, app: 0 }
  let micros = 0
  samples.forEach((/** @type {number} */ id, /** @type {number} */ i) => {
    micros += timeDeltas[i]
    // Samples count equally, because their durations include other work of the machine.
    if (micros >= 1e6 * START_SECONDS) seen[owners.get(id) ?? 'app']++
  })
  const busy = seen.agent + seen.observing + seen.app
  return { agent: seen.agent / busy, observing: seen.observing / busy }
}

module.exports = { profileFlags, shareOf }
