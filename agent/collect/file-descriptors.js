'use strict'

const { nowMs, readFileSync, readdirSync, readlinkSync, statSync } = require('../primordials')
const { isTemporary } = require('../read-file')

/** Interval of readings, and their place in it: expensive readings run in different frames. */
const EVERY_FRAMES = 5
const TURN = 1
/** Share of time for listing, which takes 1.5 µs a descriptor. */
const LIST_SHARE = 0.0005

/** Links read in a frame, in about half a millisecond: 3 to 6 µs a link, 12 if it is absent. */
const LINKS_PER_FRAME = 64
/** Limit of the links that are read. Beyond it, links are sampled evenly. */
const MOST_LINKS = 512
/** Free numbers to expect below the highest descriptor. */
const MOST_FREE = 16
/** Change of the count after which kinds are counted again: a number, and a share. */
const MOVED = 4
const MOVED_SHARE = 0.05
const AGAIN_AFTER_SECONDS = 10

/** Anonymous inodes by their kernel names; others count as `other`. */
const ANONYMOUS = new Set([
  'eventpoll',
  'eventfd',
  'inotify',
  'io_uring',
  'timerfd',
  'signalfd',
  'pidfd'
])

/**
 * @param {string} link target of a link in /proc/self/fd, see proc_pid_fd(5)
 * @returns {string} socket, pipe, file, name of an anonymous inode, or other
 */
function parseKind (link) {
  if (link.startsWith('socket:')) return 'socket'
  if (link.startsWith('pipe:')) return 'pipe'
  if (link.startsWith('/')) return 'file'
  if (!link.startsWith('anon_inode:')) return 'other'
  const name = link.slice('anon_inode:'.length)
  // Most names are in brackets, but not that of inotify.
  const bare = name.startsWith('[') ? name.slice(1, -1) : name
  return ANONYMOUS.has(bare) ? bare : 'other'
}

/**
 * Counts descriptors by kind, some links at a time.
 * @param {string[] | undefined} names all descriptors, if listed
 * @param {number} count total
 * @param {(file: string) => string} readLink
 * @returns {Generator<undefined, Record<string, number>>} counts, extrapolated from samples
 */
function * countKinds (names, count, readLink) {
  /** @type {Record<string, number>} */
  const kinds = Object.create(null)
  // The kernel assigns the lowest free number: most numbers are below the count.
  const numbers = names ? names.length : count + MOST_FREE
  const step = Math.max(1, count / MOST_LINKS)
  let found = 0
  let tried = 0
  for (let at = 0; at < numbers && found < count; at += step) {
    const number = Math.floor(at)
    try {
      const kind = parseKind(readLink(`/proc/self/fd/${names ? names[number] : number}`))
      kinds[kind] = (kinds[kind] ?? 0) + 1
      found++
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'ENOENT') throw error
    }
    if (++tried % LINKS_PER_FRAME === 0) yield
  }
  if (step > 1) for (const kind in kinds) kinds[kind] = Math.round(kinds[kind] * count / found)
  return kinds
}

/** All descriptors, by the kernel's count or a listing. */
class Descriptors {
  /** Last listing, if needed. @type {string[] | undefined} */
  names
  #list
  #stat
  /** Linux 6.2 and later report the count as the folder's size. @type {boolean | undefined} */
  #sizeTells
  #listAgainAtSeconds = 0

  /**
   * @param {{ list: (folder: string) => string[], stat: (file: string) => { size: number } }}
   *   dependencies
   */
  constructor ({ list, stat }) {
    this.#list = list
    this.#stat = stat
  }

  /**
   * @param {number} nowSeconds
   * @returns {number | undefined} undefined: too early for another listing
   */
  count (nowSeconds) {
    if (this.#sizeTells !== false) {
      const { size } = this.#stat('/proc/self/fd')
      this.#sizeTells ??= size > 0 && size === this.#listAll(nowSeconds)
      if (this.#sizeTells) {
        this.names = undefined
        return size
      }
    }
    return nowSeconds < this.#listAgainAtSeconds ? undefined : this.#listAll(nowSeconds)
  }

  /** @param {number} nowSeconds */
  #listAll (nowSeconds) {
    const beganMs = nowMs()
    this.names = this.#list('/proc/self/fd')
    this.#listAgainAtSeconds = nowSeconds + (nowMs() - beganMs) / 1000 / LIST_SHARE
    return this.names.length - 1 // without the descriptor of this folder
  }
}

/**
 * Number of open descriptors, and their kinds. process.getActiveResourcesInfo() omits unref'd
 * resources, such as idle sockets of an http.Agent and idle workers. The kernel counts them, too.
 * @param {{ list?: (folder: string) => string[], readLink?: (file: string) => string,
 *   stat?: (file: string) => { size: number } }} [dependencies]
 * @returns {import('./collector').Collector}
 */
function fileDescriptors ({
  list = folder => readdirSync(folder),
  readLink = file => readlinkSync(file),
  stat = file => statSync(file)
} = {}) {
  let closed = process.platform !== 'linux'
  let kindsClosed = false
  /** @type {number | undefined} */
  let most
  const all = new Descriptors({ list, stat })
  /** @type {ReturnType<typeof countKinds> | undefined} */
  let counting
  let lastCounted = -Infinity
  let countAgainAtSeconds = 0

  /** @param {import('./collector').Values} values */
  const goOn = values => {
    if (!counting) return
    try {
      const { done, value } = counting.next()
      if (!done) return
      values.descriptors = value
    } catch (error) {
      kindsClosed = !isTemporary(error)
    }
    counting = undefined
  }

  return {
    fields: ['openFileDescriptors', 'maxFileDescriptors', 'descriptors'],
    read (values, tick) {
      if (closed) return
      goOn(values)
      if (most !== undefined && tick.count % EVERY_FRAMES !== TURN) return
      try {
        const open = all.count(tick.nowSeconds)
        if (open !== undefined) values.openFileDescriptors = open
        most ??= Number(
          /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1]
        )
        if (most > 0) values.maxFileDescriptors = most
        if (open === undefined || counting || kindsClosed) return
        if (tick.nowSeconds < countAgainAtSeconds) return
        if (Math.abs(open - lastCounted) < Math.max(MOVED, MOVED_SHARE * lastCounted)) return
        lastCounted = open
        countAgainAtSeconds = tick.nowSeconds + AGAIN_AFTER_SECONDS
        counting = countKinds(all.names, open, readLink)
        goOn(values)
      } catch (error) {
        closed = !isTemporary(error)
      }
    }
  }
}

module.exports = { fileDescriptors, parseKind }
