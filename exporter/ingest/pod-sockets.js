'use strict'

const fs = require('node:fs')
const path = require('node:path')

/** What the kubelet makes of $(MEMWATCH_POD_UID); nothing else in the folder is ours. */
const POD_UID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
/** Its name in the folder of a pod. */
const SOCKET = 'exporter.sock'
/** New folders are told by the kernel; where it does not, they are found so. */
const LOOK_EVERY_MS = 10_000
/**
 * The kubelet leaves the folders of pods that are gone. Where nobody was connected for so long,
 * ours goes, and the folder, if nothing else is in it.
 */
const EMPTY_MS = 3_600_000

/**
 * One exporter for all pods of a node: each pod sees only its own folder of a host path, and there
 * a socket of its own. So who connects there is of that pod, whatever it says.
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
  /** @type {Map<string, { door: import('./door').Door, usedAtMs: number }>} */
  #doors = new Map()
  /** Folders that cannot be listened in: said once. @type {Set<string>} */
  #failed = new Set()
  /** One look at a time: each begins when the one before is done. */
  #looking = Promise.resolve()

  /**
   * @param {object} options
   * @param {import('./listener').Listener} options.listener
   * @param {string} options.folder absolute
   * @param {(podUid: string, error: Error) => void} options.onFailure is told once of a folder that
   *   cannot be listened in
   * @param {() => number} [options.now] ms, steady
   */
  constructor ({ listener, folder, onFailure, now = () => performance.now() }) {
    this.#listener = listener
    this.#folder = folder
    this.#onFailure = onFailure
    this.#now = now
  }

  /** Pods that are listened to. */
  get pods () {
    return [...this.#doors.keys()]
  }

  /** @throws {Error} what the file system says of the folder */
  async start () {
    this.#watcher = fs.watch(this.#folder, () => this.look())
    // The kernel may stop telling, as when the folder is removed: the timer goes on.
    this.#watcher.on('error', () => {})
    this.#timer = setInterval(() => this.look(), LOOK_EVERY_MS)
    await this.look()
  }

  async stop () {
    this.#watcher?.close()
    clearInterval(this.#timer)
    await this.#looking
  }

  /** Listen where a pod came, leave where one is gone. */
  look () {
    this.#looking = this.#looking.then(() => this.#lookOnce())
    return this.#looking
  }

  async #lookOnce () {
    const found = podsIn(this.#folder)
    for (const uid of found) {
      if (this.#doors.has(uid)) continue
      try {
        const door = await this.#listener.listen(
          { path: path.join(this.#folder, uid, SOCKET) },
          { podUid: uid }
        )
        this.#doors.set(uid, { door, usedAtMs: this.#now() })
        this.#failed.delete(uid)
      } catch (error) {
        if (!this.#failed.has(uid)) this.#onFailure(uid, /** @type {Error} */ (error))
        this.#failed.add(uid)
      }
    }
    for (const uid of this.#failed) if (!found.includes(uid)) this.#failed.delete(uid)
    for (const [uid, known] of this.#doors) {
      if (known.door.sockets.size > 0) known.usedAtMs = this.#now()
      const isEmpty = this.#now() - known.usedAtMs > EMPTY_MS
      if (found.includes(uid) && !isEmpty) continue
      this.#doors.delete(uid)
      await this.#listener.shut(known.door)
      if (isEmpty) removeIfEmpty(path.join(this.#folder, uid))
    }
  }
}

/**
 * @param {string} folder
 * @returns {string[]} UIDs of the pods that have a folder there: no links
 */
function podsIn (folder) {
  try {
    return fs
      .readdirSync(folder, { withFileTypes: true })
      .filter(entry => entry.isDirectory() && POD_UID.test(entry.name))
      .map(({ name }) => name)
  } catch {
    return [] // it is gone; when it is back, so are its pods
  }
}

/** @param {string} folder */
function removeIfEmpty (folder) {
  try {
    fs.rmdirSync(folder)
  } catch {} // something else is in it, or it is gone
}

module.exports = { PodSockets }
