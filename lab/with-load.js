'use strict'

const { spawn } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')

/** @typedef {import('./app-run').AppRun} AppRun */
/** @typedef {import('./load').Load} Load */

/**
 * Listens on a free loopback port, and loads the server from a process of its own, so that the
 * client's heap and CPU are not the app's. The load process has no agent (no
 * NODE_OPTIONS, MEMWATCH_DISABLED=1). It cannot outlive the app: its stdin is a pipe of the app,
 * which the kernel closes at any end of the app. If the app has a CPU quota, MEMWATCH_LAB_CLIENTS
 * names a cgroup without the quota for the clients, because clients of a real pod do not use its
 * CPU.
 * @param {import('node:http').Server} server counts each finished response as served
 * @param {AppRun} run
 * @param {Omit<Load, 'port'>} load `run.rate` multiplies its requests per second
 */
function withLoad (server, run, load) {
  server.on('request', (request, response) => response.on('finish', () => run.served()))
  server.listen(0, '127.0.0.1', () => {
    const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
    const phases = load.phases.map((phase) => ({ ...phase, perSecond: phase.perSecond * run.rate }))
    /** @type {Load} */
    const spec = { ...load, phases, port }
    const { NODE_OPTIONS, MEMWATCH_LAB_CLIENTS, ...env } = process.env
    const child = spawn(
      process.execPath,
      ['--max-semi-space-size=2', path.join(__dirname, 'load.js'), JSON.stringify(spec)],
      { env: { ...env, MEMWATCH_DISABLED: '1' }, stdio: ['pipe', 'inherit', 'inherit'] }
    )
    if (MEMWATCH_LAB_CLIENTS) {
      fs.writeFileSync(path.join(MEMWATCH_LAB_CLIENTS, 'cgroup.procs'), String(child.pid))
    }
    child.on('exit', lost)
    run.onEnd(() => { child.off('exit', lost).kill() })
  })

  /**
   * @param {number | null} code
   * @param {string | null} signal
   */
  function lost (code, signal) {
    console.error(`load generator ended (${signal ?? code}): nothing asks this server any more`)
  }
}

module.exports = { withLoad }
