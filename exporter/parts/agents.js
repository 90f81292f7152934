'use strict'

const { Listener } = require('../ingest/listener')
const { PodSockets } = require('../ingest/pod-sockets')

/**
 * Upper bound of processes and workers of one pod if an exporter serves all pods of a node,
 * including recently vanished ones.
 */
const MAX_TARGETS_OF_POD = 64

/**
 * Accepts agents at --socket, and in each folder of --socket-dir. Emits the lines of each
 * connection word for word: `session` (session, hello), `line` (session, line), `hangup` (session).
 */
class AgentsPart {
  name = 'agents'
  option = '--socket'
  /** @type {import('../exporter').Exporter | undefined} */
  #exporter
  /** @type {Listener | undefined} */
  #listener
  /** @type {PodSockets | undefined} */
  #podSockets
  /** @type {Map<string, number>} */
  #rejected = new Map()
  #frames = 0
  #framesShed = 0

  get state () {
    return {
      rejected: this.#rejected,
      frames: this.#frames,
      framesShed: this.#framesShed,
      connections: this.#listener?.connections ?? 0
    }
  }

  /** @param {import('../exporter').Exporter} exporter */
  start (exporter) {
    const { captures, config, load, log } = exporter
    this.#exporter = exporter
    const listener = this.#listener = new Listener({
      open: (hello, send, podUid) => openTarget(exporter, { hello, send, podUid }),
      sheds: ({ target }, { count, isLarger }) => {
        const sheds = load.sheds(target, count, isLarger)
        if (sheds) this.#framesShed++
        return sheds
      },
      received: bytes => { if (load.received(bytes)) exporter.emit('load') },
      record: hello => {
        const session = Symbol('session')
        exporter.emit('session', session, hello)
        return {
          line: line => { exporter.emit('line', session, line) },
          closed: () => { exporter.emit('hangup', session) }
        }
      },
      capture: (message, socket, rest) => captures.take(message, socket, rest),
      reject: reason => { this.#rejected.set(reason, (this.#rejected.get(reason) ?? 0) + 1) }
    })
    if (config.socketDir) {
      this.#podSockets = new PodSockets({
        listener,
        folder: config.socketDir,
        onFailure: (pod, error) => log.error({ pod }, `--socket-dir: ${error.message}`)
      })
    }
    exporter.on('frame', () => { this.#frames++ })
  }

  /** @returns {Promise<{ socket: import('../ingest/address').Address | undefined }>} */
  async open () {
    const { config } = /** @type {import('../exporter').Exporter} */ (this.#exporter)
    const door = await this.#listener?.listen(config.socket)
    await this.#podSockets?.start()
    return { socket: door?.address }
  }

  /** Resolves when no agent is connected. */
  async drained () {
    await this.#listener?.drained()
  }

  async stop () {
    await this.#podSockets?.stop()
    await this.#listener?.close()
  }
}

/**
 * Opens a target. The socket determines its pod, not the agent's hello. No pod can use up the room
 * of others.
 *
 * @param {import('../exporter').Exporter} exporter
 * @param {object} agent
 * @param {import('@memwatch/engine/decode/decode').HelloMessage} agent.hello hello as the agent
 *   reported it
 * @param {(line: string) => void} agent.send
 * @param {string} [agent.podUid] UID of the pod to which the socket belongs
 * @returns {import('../ingest/listener').Session | import('@memwatch/engine/decode/decode').RejectReason}
 */
function openTarget ({ load, targetRegistry }, { hello, send, podUid }) {
  if (podUid !== undefined && hello.pod?.uid !== undefined && hello.pod.uid !== podUid) {
    return 'wrong_pod'
  }
  const known = podUid === undefined ? hello : { ...hello, pod: { ...hello.pod, uid: podUid } }
  // An agent whose target is already watched may reconnect during overload.
  if (!load.now.newTargets && !targetRegistry.has(known)) return 'overloaded'
  const limits = podUid === undefined ? {} : { maxOfPod: MAX_TARGETS_OF_POD }
  return targetRegistry.open(known, send, limits)
}

module.exports = { AgentsPart }
