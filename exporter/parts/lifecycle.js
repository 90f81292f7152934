'use strict'

/** Starts, opens and stops the parts of one exporter, in the order of parts/index.js. */
class Lifecycle {
  /** @type {import('./index').Part[]} */
  #parts
  /** Running parts, in the order of their start. @type {import('./index').Part[]} */
  #started = []
  #log

  /**
   * @param {readonly (new () => import('./index').Part)[]} parts
   * @param {{ error: (error: unknown, text: string) => void }} log
   */
  constructor (parts, log) {
    this.#parts = parts.map(Part => new Part())
    this.#log = log
  }

  /** States of the parts. @returns {object} */
  get state () {
    return Object.assign({}, ...this.#parts.map(({ state }) => state))
  }

  /**
   * @param {import('../exporter').Exporter} exporter
   * @returns {Promise<object>} the addresses on which it listens, by name
   * @throws {Error} the message names the part that cannot start, the code is the system's, such as
   *   EADDRINUSE; all started parts are stopped then
   */
  async start (exporter) {
    const addresses = {}
    try {
      for (const part of this.#parts) {
        this.#started.push(part)
        await attempt(`${part.name} cannot start`, () => part.start(exporter))
      }
      for (const part of this.#parts.toReversed()) {
        Object.assign(addresses, await attempt(sayOpening(part), () => part.open?.()))
      }
    } catch (error) {
      await this.stop()
      throw error
    }
    return addresses
  }

  /** Resolves when no work is pending. */
  async drained () {
    for (const part of this.#parts) await part.drained?.()
  }

  /**
   * Stops the started parts. A part that fails to stop does not prevent the last save of others.
   * @param {import('@memwatch/engine/recording/format').End} [end] end of the watched command
   */
  async stop (end) {
    for (let part = this.#started.pop(); part; part = this.#started.pop()) {
      try {
        await part.stop?.(end)
      } catch (error) {
        this.#log.error(error, `${part.name} failed to stop`)
      }
    }
  }
}

/**
 * @template T
 * @param {string} failure beginning of the message for an error that does not name an option itself
 * @param {() => T | Promise<T>} run
 * @returns {Promise<T>}
 */
async function attempt (failure, run) {
  try {
    return await run()
  } catch (cause) {
    const { code } = /** @type {NodeJS.ErrnoException} */ (cause)
    if (code === 'MEMWATCH_CONFIG') throw cause
    const reason = explain(/** @type {NodeJS.ErrnoException} */ (cause))
    throw Object.assign(new Error(`${failure}: ${reason}`, { cause }), { code })
  }
}

/**
 * Begins the message for a part that cannot listen, with the option to change.
 * @param {import('./index').Part} part
 */
const sayOpening = ({ option }) => `${option === undefined ? '' : `${option}: `}cannot listen`

/**
 * @param {NodeJS.ErrnoException & { address?: string, port?: number }} error error of the system
 */
function explain ({ code, message, address, port }) {
  // For a path the port is -1.
  if (port === undefined || port < 0) return message
  const at = `${address}:${port}`
  if (code === 'EADDRINUSE') return `another process listens at ${at}; choose another port`
  if (code === 'EACCES') return `${at} is not allowed for this user; choose a port above 1023`
  if (code === 'EADDRNOTAVAIL') return `${address} is not an address of this machine`
  return message
}

module.exports = { Lifecycle }
