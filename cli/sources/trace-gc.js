'use strict'

const path = require('node:path')
const { LineSplitter } = require('@memwatch/engine/decode/lines')
const { defineSource, SourceError } = require('./define-source')
const { GcLogLife } = require('./gc-log-life')
const { parseGcLine, isTorn, isOtherTrace } = require('./gc-log-line')
const { V8, heapSizeLimit } = require('./heap-bounds')

/** Length limit of a line, because an app may log whole documents between GCs. */
const MAX_LINE_BYTES = 2 ** 20
/** Marker with which V8 begins to repeat the last GCs when a heap is full. */
const REPEATED = '<--- Last few GCs --->'
const OUT_OF_MEMORY = /FATAL ERROR: .*(heap out of memory|heap limit)/

const OPEN_LIMIT =
  'The source lacks the heap size limit, unless --flags or --memory give it. memwatch tries the ' +
    'smallest and the largest limit that V8 could have chosen without flags. Findings true for ' +
    'both are confirmed, findings true for one are suspected. The limit of a worker may be as ' +
    'low as its largest heap.'

const traceGc = defineSource({
  id: 'trace-gc',
  title: 'a --trace-gc log',
  accepted: 'the output of node --trace-gc, also among other lines',
  fields: ['gc', 'liveHeapBytes', 'liveHeapMajors', 'heapUsedBytes', 'heapTotalBytes', 'spaces'],
  lacks: 'RSS, Buffers, handles, the event loop, and the limits of the heap',
  bounds: given => (heapSizeLimit(given, 0) === undefined ? OPEN_LIMIT : undefined),
  accepts: head =>
    head.split('\n').some(line => parseGcLine(line) !== undefined) ||
    head.split('\n').some(isOtherTrace),

  async read (inputs, lives, given) {
    for (const input of inputs) await readLog(input, lives, given)
  }
})

/** Reads the lines of one log, and assigns them to isolates. */
class GcLog {
  /** Numbers of lines of GCs, of lines of another trace, and of unreadable lines. */
  taken = 0
  others = 0
  damaged = 0
  #input
  #name
  #lives
  #given
  /** Open isolates, by pid and address. @type {Map<string, GcLogLife>} */
  #open = new Map()
  /**
   * Number of isolates of a process: the first is the main thread.
   * @type {Map<number, number>}
   */
  #threads = new Map()
  #isRepeating = false
  /** The process of the previous line. */
  #pid = NaN

  /**
   * @param {import('./define-source').Input} input
   * @param {import('./lives').Lives} lives
   * @param {import('./define-source').Given} given
   */
  constructor (input, lives, given) {
    this.#input = input
    this.#name = nameOf(input.name)
    this.#lives = lives
    this.#given = given
  }

  /** @param {string} text */
  take (text) {
    const line = parseGcLine(text)
    if (!line) return this.#takeOther(text)
    this.taken++
    this.#pid = line.pid
    const key = `${line.pid}:${line.isolate}`
    let life = this.#open.get(key)
    if (life && this.#isRepeating && line.atSeconds <= life.lastSeconds) return
    if (life && line.atSeconds < life.lastSeconds) {
      // The time went back, so this is the next process with the pid: a restarted container uses
      // the same pids.
      this.#endAll(line.pid)
      life = undefined
    }
    life ??= this.#begin(key, line)
    if (life.isMain) this.#yieldToOlder(life, line)
    life.take(line)
  }

  close () {
    for (const life of this.#open.values()) life.close()
  }

  /** @param {string} text line without a GC */
  #takeOther (text) {
    if (text.includes(REPEATED)) this.#isRepeating = true
    else if (OUT_OF_MEMORY.test(text)) {
      this.#isRepeating = false
      this.#lives.notes.add(
        `process ${this.#pid} of ${this.#input.name} ended because its heap was full: ` +
          `${text.slice(text.indexOf('FATAL')).slice(0, 120)}`
      )
      this.#endAll(this.#pid)
    } else if (isOtherTrace(text)) this.others++
    else if (isTorn(text)) this.damaged++
  }

  /**
   * @param {string} key
   * @param {GcLine} line first line of the isolate
   */
  #begin (key, line) {
    const thread = this.#threads.get(line.pid) ?? 0
    this.#threads.set(line.pid, thread + 1)
    const hello = helloOf(this.#name, this.#input.name, line, thread, this.#given)
    const nodeVersion = versionOf(this.#given, line)
    const life = new GcLogLife(this.#lives, hello, { ...this.#given, nodeVersion })
    this.#open.set(key, life)
    return life
  }

  /**
   * Corrects the choice of the main thread: it is the oldest isolate, whichever isolate had the
   * first GC.
   * @param {GcLogLife} life
   * @param {GcLine} line line of a new isolate
   */
  #yieldToOlder (life, { pid, atSeconds }) {
    for (const [key, older] of this.#open) {
      if (atSeconds < older.lastSeconds && key.startsWith(`${pid}:`)) life.yieldTo(older)
    }
  }

  /** @param {number} pid pid of a process that ended */
  #endAll (pid) {
    for (const [key, life] of this.#open) {
      if (!key.startsWith(`${pid}:`)) continue
      life.end()
      this.#open.delete(key)
    }
    this.#threads.delete(pid)
  }
}

/** @typedef {NonNullable<ReturnType<typeof parseGcLine>>} GcLine */

/**
 * @param {import('./define-source').Input} input
 * @param {import('./lives').Lives} lives
 * @param {import('./define-source').Given} given
 */
async function readLog (input, lives, given) {
  const log = new GcLog(input, lives, given)
  const lines = new LineSplitter({ maxBytes: MAX_LINE_BYTES })
  for await (const chunk of input.bytes()) lines.push(chunk, text => log.take(text), () => {})
  // Ends the last line, which a killed process may have left incomplete.
  lines.push(Buffer.from('\n'), text => log.take(text), () => {})
  log.close()
  if (log.taken === 0 && log.others > 0) {
    throw new SourceError(
      `${input.name}: expected lines of --trace-gc, got those of --trace-gc-nvp or ` +
        '--trace-gc-verbose; run node with --trace-gc'
    )
  }
  if (log.damaged > 0) {
    lives.notes.add(
      `${input.name}: skipped ${log.damaged} damaged or unknown lines`
    )
  }
}

/** @param {string} file */
const nameOf = file =>
  file === '-'
    ? 'stdin'
    : path
      .basename(file)
      .replace(/\.gz$/, '')
      .replace(/\.[a-z]+$/, '') || 'log'

/**
 * @param {import('./define-source').Given} given
 * @param {import('./gc-log-line').GcLine} line
 */
const versionOf = ({ nodeVersion }, { node }) =>
  nodeVersion ?? (/^\d+$/.test(node) ? node : undefined)

/**
 * @param {string} name
 * @param {string} file
 * @param {import('./gc-log-line').GcLine} line first line of the isolate
 * @param {number} threadId
 * @param {import('./define-source').Given} given
 */
function helloOf (name, file, line, threadId, given) {
  const v8 = V8[parseInt(versionOf(given, line) ?? '')]
  return {
    name,
    host: file,
    pid: line.pid,
    threadId,
    node: given.nodeVersion ?? line.node,
    ...(v8 && { v8: v8.join('.') }),
    ...(given.containerLimitBytes !== undefined && { constrainedBytes: given.containerLimitBytes })
  }
}

module.exports = { traceGc }
