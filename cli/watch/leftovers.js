'use strict'

const fs = require('node:fs')

/** Grace period of remaining processes, before they are killed. */
const GRACE_MS = 5000
const POLL_MS = 50

/**
 * Processes that a command left running. Only they have the path of memwatch's private socket in
 * their environment. Without /proc it finds none.
 */
class Leftovers {
  #marker

  /** @param {string} socket */
  constructor (socket) {
    this.#marker = `MEMWATCH_SOCKET=${socket}\0`
  }

  /** Ends them, first by SIGTERM, then by SIGKILL. Resolves when none is left. */
  async end () {
    const deadline = Date.now() + GRACE_MS
    for (let signal = /** @type {NodeJS.Signals | 0} */ ('SIGTERM'), pids = this.#find(); pids.length > 0; pids = this.#find()) {
      for (const pid of pids) {
        try { process.kill(pid, signal) } catch {} // it has just ended
      }
      signal = Date.now() > deadline ? 'SIGKILL' : 0
      if (Date.now() > 2 * GRACE_MS + deadline) return // unkillable: stuck in the kernel
      await new Promise(resolve => setTimeout(resolve, POLL_MS))
    }
  }

  /** @returns {number[]} */
  #find () {
    let entries
    try {
      entries = fs.readdirSync('/proc')
    } catch {
      return []
    }
    return entries
      .filter(name => /^\d+$/.test(name))
      .map(Number)
      .filter(pid => pid !== process.pid && this.#isOurs(pid))
  }

  /** @param {number} pid */
  #isOurs (pid) {
    try {
      return (
        fs.readFileSync(`/proc/${pid}/environ`, 'latin1').concat('\0').includes(this.#marker) &&
        // A zombie has ended, but its parent has not read its status.
        !/\) Z /.test(fs.readFileSync(`/proc/${pid}/stat`, 'latin1'))
      )
    } catch {
      return false // another user's, or gone
    }
  }
}

module.exports = { Leftovers }
