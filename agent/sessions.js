'use strict'

const { isMainThread } = require('node:worker_threads')
const { isOwnSocket } = require('./protocol/socket')
const { encode } = require('./encode')
const { nowMs, stringifyJson } = require('./primordials')

/** First line of each connection, and execution of its commands. */
class Sessions {
  #config
  #guard
  #access
  #pauses
  #ownGc
  #sendFrame
  /**
   * Address of the Unix socket, if there is one: commands come over it only, as any process can
   * reach a TCP port.
   */
  #address
  /**
   * Hello up to its last brace: fields that vary by connection follow.
   * @type {string | undefined}
   */
  #helloStart
  /** Created with the first command. @type {import('./commands').Commands | undefined} */
  #commands

  /**
   * @param {object} options
   * @param {import('./protocol/config').Config} options.config
   * @param {import('./guard').Guard} options.guard
   * @param {import('./allocator-access').AllocatorAccess} [options.access]
   * @param {ReturnType<typeof import('./collect/gc').gc>} options.pauses
   * @param {import('./collect/gc').OwnGc} options.ownGc
   * @param {(nowSeconds: number, isOnDemand: boolean) => void} options.sendFrame
   */
  constructor ({ config, guard, access, pauses, ownGc, sendFrame }) {
    this.#config = config
    this.#guard = guard
    this.#access = access
    this.#pauses = pauses
    this.#ownGc = ownGc
    this.#sendFrame = sendFrame
    this.#address = 'path' in config.socket ? { path: config.socket.path } : undefined
  }

  /** @returns {import('./transport').Session} session of a new connection */
  begin () {
    const names = this.#isTrusted() ? this.#allowedCommands() : []
    if (names.length === 0) return { hello: () => this.hello() }
    const nonce = this.#config.tokenFile ? require('./protocol/proof').newNonce() : undefined
    const connection = { nonce, sequence: 0 }
    return {
      hello: () => this.hello({ commands: names, nonce }),
      execute: this.#guard.wrap('command', (line, answer) =>
        this.#execute(line, answer, connection)
      )
    }
  }

  /**
   * @param {object} [ofConnection]
   * @returns {string}
   */
  hello (ofConnection = {}) {
    this.#helloStart ??= encode('hello', {
      ...require('./identity').hello(this.#config),
      ...(isMainThread && { cgroup: require('./collect/memory-cgroup').memoryCgroup() }),
      intervalSeconds: this.#config.intervalSeconds,
      ...(this.#access && { allocatorAccess: this.#access.by })
    }).slice(0, -2)
    const rest = stringifyJson({ ...this.#pauses.counter(), ...ofConnection }).slice(1)
    return `${this.#helloStart},${rest}\n`
  }

  /** Commands that the operator allows. @returns {import('./protocol/frame').CommandName[]} */
  #allowedCommands () {
    /** @type {import('./protocol/frame').CommandName[]} */
    const names = []
    if (this.#trimmable) names.push('look', 'trim')
    if (this.#config.captures) names.push('capture', 'sample_heap', 'count_slices')
    if (this.#config.forcedGc !== 'off') names.push('force_gc')
    return names
  }

  get #trimmable () {
    return this.#config.allocatorAccess === 'trim' ? this.#access : undefined
  }

  #isTrusted () {
    if (!this.#address) return false
    if (this.#config.tokenFile) return true
    try {
      return isOwnSocket(this.#address.path)
    } catch {
      return false
    }
  }

  /**
   * @param {string} line
   * @param {(line: string) => void} answer
   * @param {import('./commands').Connection} connection
   * @returns {boolean} true: a trusted command
   */
  #execute (line, answer, connection) {
    this.#commands ??= this.#loadCommands()
    return this.#commands.execute(line, found => answer(encode('answer', found)), connection)
  }

  #loadCommands () {
    const address = /** @type {{ path: string }} */ (this.#address)
    const { captures, allowSnapshot, forcedGc, tokenFile } = this.#config
    return require('./commands').commands({
      address,
      access: this.#trimmable,
      captures: captures
        ? require('./capture').captures({ address, allowSnapshot, counts: this.#pauses })
        : undefined,
      forcedGc: forcedGc === 'off'
        ? undefined
        : new (require('./forced-gc').ForcedGc)(forcedGc, this.#ownGc, this.#pauses),
      tokenFile,
      sendExtraFrame: () => this.#sendFrame(nowMs() / 1000, true)
    })
  }
}

module.exports = { Sessions }
