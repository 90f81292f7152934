'use strict'

const fs = require('node:fs')
const path = require('node:path')

/**
 * Pattern of the folders that the kubelet creates from $(MEMWATCH_POD_UID). The exporter ignores
 * all other names.
 */
const POD_UID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
/** Socket name in the folder of a pod. */
const SOCKET = 'exporter.sock'
/** Interval of polling for new folders, for file systems without change events. */
const LOOK_EVERY_MS = 10_000
/**
 * Time without a connection after which the exporter removes its socket, and the folder if that is
 * empty. The kubelet does not remove the folders of ended pods.
 */
const EMPTY_MS = 3_600_000

/**
 * Sockets of one exporter for all pods of a node. Each pod sees only its own folder of a host path,
 * with its own socket. So a connection to this socket comes from that pod, whatever the hello
 * claims.
 *
 *   FOLDER/0d4b1c3e-…/exporter.sock
 */
class PodSockets {
  #listener
  #folder
  #onFailure
  #now
  /** @type {fs.FSWatcher | undefined} */
  #watcher
  /** @type {NodeJS.Timeout | undefined} */
  #timer
  /** @type {Map<string, { endpoint: import('./endpoint').Endpoint, usedAtMs: number }>} */
  #endpoints = new Map()
  /** Folders that were already reported as unusable. @type {Set<string>} */
  #failed = new Set()
  /** The last poll: polls run one after the other. */
  #looking = Promise.resolve()

  /**
   * @param {object} options
   * @param {import('./listener').Listener} options.listener
   * @param {string} options.folder absolute
   * @param {(podUid: string, error: Error) => void} options.onFailure called once for a folder in
   *   which no socket can be created
   * @param {() => number} [options.now] ms, monotonic
   */
  constructor ({ listener, folder, onFailure, now = () => performance.now() }) {
    this.#listener = listener
    this.#folder = folder
    this.#onFailure = onFailure
    this.#now = now
  }

  /** Pods with a listener. */
  get pods () {
    return [...this.#endpoints.keys()]
  }

  /** @throws {Error} of the file system */
  async start () {
    this.#watcher = fs.watch(this.#folder, () => this.look())
    // The kernel may stop sending events, for example if the folder is removed. The timer still
    // polls.
    this.#watcher.on('error', () => {})
    this.#timer = setInterval(() => this.look(), LOOK_EVERY_MS)
    await this.look()
  }

  async stop () {
    this.#watcher?.close()
    clearInterval(this.#timer)
    await this.#looking
  }

  /** Starts listeners for new pods, and stops those of ended pods. */
  look () {
    this.#looking = this.#looking.then(() => this.#lookOnce())
    return this.#looking
  }

  async #lookOnce () {
    const found = podsIn(this.#folder)
    for (const uid of found) {
      if (this.#endpoints.has(uid)) continue
      try {
        const endpoint = await this.#listener.listen(
          { path: path.join(this.#folder, uid, SOCKET) },
          { podUid: uid }
        )
        this.#endpoints.set(uid, { endpoint, usedAtMs: this.#now() })
        this.#failed.delete(uid)
      } catch (error) {
        if (!this.#failed.has(uid)) this.#onFailure(uid, /** @type {Error} */ (error))
        this.#failed.add(uid)
      }
    }
    for (const uid of this.#failed) if (!found.includes(uid)) this.#failed.delete(uid)
    for (const [uid, known] of this.#endpoints) {
      if (known.endpoint.sockets.size > 0) known.usedAtMs = this.#now()
      const isEmpty = this.#now() - known.usedAtMs > EMPTY_MS
      if (found.includes(uid) && !isEmpty) continue
      this.#endpoints.delete(uid)
      await this.#listener.shut(known.endpoint)
      if (isEmpty) removeIfEmpty(path.join(this.#folder, uid))
    }
  }
}

/**
 * @param {string} folder
 * @returns {string[]} UIDs of the pods that have a folder; symbolic links are ignored
 */
function podsIn (folder) {
  try {
    return fs
      .readdirSync(folder, { withFileTypes: true })
      .filter(entry => entry.isDirectory() && POD_UID.test(entry.name))
      .map(({ name }) => name)
  } catch {
    return [] // The folder is gone; its pods are found again when it returns.
  }
}

/** @param {string} folder */
function removeIfEmpty (folder) {
  try {
    fs.rmdirSync(folder)
  } catch {} // The folder has other content, or is gone.
}

module.exports = { PodSockets }
