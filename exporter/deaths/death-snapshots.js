'use strict'

const path = require('node:path')
const { plainText } = require('@memwatch/agent/protocol/text-rules')
const { findSnapshotFiles, listSnapshotFolders } = require('./snapshot-files')

/**
 * Upper bound of deaths that wait for an analysis. If a whole fleet dies at once, the deaths
 * usually have one cause.
 */
const MOST_WAITING = 10
const MOST_USED = 1000
/** The longest path that Linux accepts: PATH_MAX of limits.h. */
const MOST_PATH = 4096

/** @typedef {import('@memwatch/engine/verdicts/holders').Holders} Holders */
/** @typedef {import('@memwatch/engine/history/target').Target} Target */

/**
 * Analyses heap snapshots that V8 wrote before a process died, as --heapsnapshot-near-heap-limit
 * requests. The files stay in place, and are analysed one at a time in a side process. With two
 * snapshots, the piles consist of objects created between them.
 */
class DeathSnapshots {
  #retainersOf
  #folder
  #closing = new AbortController()
  #waiting = 0
  /**
   * Files that already explained a death. If several containers write to one volume, processes with
   * equal pids may match the same file.
   * @type {Set<string>}
   */
  #used = new Set()
  /** Resolves with the last analysis. @type {Promise<unknown>} */
  #last = Promise.resolve()

  /**
   * @param {object} options
   * @param {typeof import('../captures/retainers').retainersOf} options.retainersOf
   * @param {string} [options.folder] a volume to which apps write snapshots: --snapshot-dir
   */
  constructor ({ retainersOf, folder }) {
    this.#retainersOf = retainersOf
    this.#folder = folder
  }

  /**
   * Searches for snapshots of a target that ended.
   * @param {Target} target
   * @param {readonly string[]} ownFolders folders to which it wrote snapshots, if they can be seen
   * @param {object} listener
   * @param {(file: string) => void} listener.onStart
   * @param {(holders: Holders) => void} listener.onEnd
   */
  add (target, ownFolders, { onStart, onEnd }) {
    if (this.#waiting >= MOST_WAITING || this.#closing.signal.aborted) return
    const folders = new Set(this.#folder === undefined ? ownFolders : [this.#folder, ...ownFolders])
    const [file, earlier] = findSnapshotFiles([...folders], {
      hello: target.hello,
      lastFrameUnixMs: target.frame?.atUnixMs ?? target.hello.startedAtUnixMs
    })
    if (!file || this.#used.has(file.file)) return
    this.#used.add(file.file)
    if (this.#used.size > MOST_USED) this.#used.delete(this.#used.values().next().value ?? '')
    this.#waiting++
    onStart(file.file)
    this.#last = this.#last
      .then(() => this.#analyse(target, file, earlier))
      .then(holders => {
        this.#waiting--
        if (!this.#closing.signal.aborted) onEnd(holders)
      })
  }

  /**
   * Searches for snapshots of a process that never reported.
   * @param {object} of
   * @param {number} of.pid
   * @param {string} of.cwd
   * @param {string[]} of.command
   * @param {string[]} of.nodeOptions
   * @param {number} of.startedAtUnixMs
   * @returns {Promise<Holders | null>} null without a snapshot
   */
  async explain ({ pid, cwd, command, nodeOptions, startedAtUnixMs }) {
    const flags = { execArgv: command, nodeOptions }
    const hello = { ...flags, pid, threadId: 0, startedAtUnixMs }
    const folders = listSnapshotFolders(cwd, flags)
    const [file, before] = findSnapshotFiles(folders, { hello, lastFrameUnixMs: startedAtUnixMs })
    return file ? this.#analyse({ name: path.basename(command[0]), hello: {} }, file, before) : null
  }

  /** Resolves when no analysis is running. */
  async idle () {
    await this.#last
  }

  close () {
    this.#closing.abort()
  }

  /**
   * @param {{ name: string, hello: { agentFolder?: string } }} target
   * @param {import('./snapshot-files').SnapshotFile} snapshot
   * @param {import('./snapshot-files').SnapshotFile} [before]
   * @returns {Promise<Holders>}
   */
  async #analyse ({ name: app, hello: { agentFolder } }, { file, writtenUnixMs }, before) {
    const { refused, sinceUnixMs, piles } = await this.#retainersOf(file, {
      earlier: before && { file: before.file, atUnixMs: before.writtenUnixMs },
      app,
      folder: path.dirname(file),
      agentFolder,
      signal: this.#closing.signal
    })
    return {
      captureId: null,
      file: plainText(file, MOST_PATH),
      atUnixMs: writtenUnixMs,
      sinceUnixMs,
      refused,
      piles
    }
  }
}

module.exports = { DeathSnapshots }
