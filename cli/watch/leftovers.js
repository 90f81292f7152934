'use strict'

const fs = require('node:fs')

/** Grace period of remaining processes, before they are killed. */
const GRACE_MS = 5000
const POLL_MS = 50

/**
 * Processes that a command left running. They are recognised by the path of memwatch's private
 * socket in their environment. Without /proc none are found.
 */
class Leftovers {
  #marker

  /** @param {string} socket */
  constructor (socket) {
    this.#marker = `MEMWATCH_SOCKET=${socket}\0`
  }

  /**
   * Ends these processes, first by SIGTERM, then by SIGKILL. Resolves when none is left, or if one
   * cannot be killed.
   */
  async end () {
    const deadline = Date.now() + GRACE_MS
    for (let signal = /** @type {NodeJS.Signals | 0} */ ('SIGTERM'), pids = this.#find(); pids.length > 0; pids = this.#find()) {
      for (const pid of pids) {
        try { process.kill(pid, signal) } catch {} // The process has just ended.
      }
      signal = Date.now() > deadline ? 'SIGKILL' : 0
      // The process cannot be killed: it is stuck in the kernel.
      if (Date.now() > 2 * GRACE_MS + deadline) return
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
      return false // The process belongs to another user, or is gone.
    }
  }
}

module.exports = { Leftovers }
