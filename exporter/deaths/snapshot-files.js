'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { flagsInForce } = require('@memwatch/engine/v8/flags')

/**
 * Upper bound of entries read from a folder: a working directory may contain any number of files.
 */
const MOST_ENTRIES = 10_000
/**
 * Heap.DATE.TIME.PID.THREAD.NUMBER.heapsnapshot: DiagnosticFilename in src/node_report.cc of
 * Node.js, written by --heapsnapshot-near-heap-limit.
 */
const OF_NODE = /^Heap\.\d{8}\.\d{6}\.(\d+)\.(\d+)\.\d+\.heapsnapshot$/
/**
 * v8-heap-TIME.heapsnapshot, which V8's own flag --heap-snapshot-on-oom always writes to the
 * working directory. Since Node.js 26 the pid follows the time.
 */
const OF_V8 = /^v8-heap-\d+(?:-(\d+))?\.heapsnapshot$/
/** Tolerance: a snapshot begins at most this long before the last frame. */
const BEFORE_LAST_FRAME_MS = 2000

/**
 * A snapshot that V8 wrote by itself.
 * @typedef {{ file: string, writtenUnixMs: number }} SnapshotFile
 */

/** @typedef {import('@memwatch/agent/protocol/frame').Hello} Hello */

/**
 * Folders to which a process writes snapshots, if the exporter can open them: the working directory
 * and the folder of --diagnostic-dir. A process in another container has another file system, so
 * its folder has to be mounted (--snapshot-dir).
 * @param {Hello} hello
 * @param {(link: string) => string} [readLink]
 * @returns {string[] | undefined} undefined if the process is gone, cannot be seen, or has
 *   other mounts
 */
function findSnapshotFolders (hello, readLink = fs.readlinkSync) {
  try {
    const link = (/** @type {string} */ name) => readLink(`/proc/${hello.pid}/${name}`)
    if (link('ns/mnt') !== readLink('/proc/self/ns/mnt')) return undefined
    if (link('root') !== readLink('/proc/self/root')) return undefined
    return listSnapshotFolders(link('cwd'), hello)
  } catch {
    return undefined
  }
}

/**
 * @param {string} cwd working directory of a process
 * @param {Pick<Hello, 'execArgv' | 'nodeOptions'>} hello
 * @returns {string[]} folders to which it writes snapshots
 */
const listSnapshotFolders = (cwd, hello) =>
  [...new Set([path.resolve(cwd, flagsInForce(hello).get('--diagnostic-dir') ?? ''), cwd])]

/**
 * Finds the snapshots of one isolate by their names and times.
 * @param {readonly string[]} folders
 * @param {object} of
 * @param {Pick<Hello, 'pid' | 'threadId' | 'startedAtUnixMs' | 'execArgv' | 'nodeOptions'>}
 *   of.hello
 * @param {number} of.lastFrameUnixMs
 * @returns {SnapshotFile[]} files, newest first; none from an unreadable folder
 */
function findSnapshotFiles (folders, { hello, lastFrameUnixMs }) {
  const { pid, threadId, startedAtUnixMs } = hello
  const isOnOom = threadId === 0 && flagsInForce(hello).has('--heap-snapshot-on-oom')
  return folders
    .flatMap(folder => readNames(folder).map(name => ({ name, file: path.join(folder, name) })))
    .flatMap(({ name, file }) => {
      const ofNode = OF_NODE.exec(name)
      const ofV8 = isOnOom ? OF_V8.exec(name) : null
      const isOwn = ofNode
        ? Number(ofNode[1]) === pid && Number(ofNode[2]) === threadId
        : ofV8 && Number(ofV8[1] ?? pid) === pid
      if (!isOwn) return []
      const writtenUnixMs = readTime(file)
      const least = ofNode ? startedAtUnixMs : lastFrameUnixMs - BEFORE_LAST_FRAME_MS
      return writtenUnixMs !== undefined && writtenUnixMs >= least ? [{ file, writtenUnixMs }] : []
    })
    .sort((a, b) => b.writtenUnixMs - a.writtenUnixMs)
}

/**
 * @param {string} file
 * @returns {number | undefined} Unix ms of its last change; undefined if it is not a regular file
 */
function readTime (file) {
  const stats = fs.lstatSync(file, { throwIfNoEntry: false })
  return stats?.isFile() ? Math.round(stats.mtimeMs) : undefined
}

/**
 * @param {string} folder
 * @returns {string[]} names of the entries; empty if the folder cannot be read
 */
function readNames (folder) {
  /** @type {string[]} */
  const names = []
  try {
    const open = fs.opendirSync(folder)
    try {
      for (let entry = open.readSync(); entry !== null; entry = open.readSync()) {
        names.push(entry.name)
        if (names.length === MOST_ENTRIES) break
      }
    } finally {
      open.closeSync()
    }
  } catch {} // The folder is gone, or belongs to another user.
  return names
}

module.exports = { findSnapshotFolders, findSnapshotFiles, listSnapshotFolders }
