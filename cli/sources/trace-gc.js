'use strict'

const path = require('node:path')
const { LineSplitter } = require('memwatch-engine/decode/lines')
const { defineSource, SourceError } = require('./define-source')
const { GcLogLife } = require('./gc-log-life')
const { parseGcLine, isTorn, isOtherTrace } = require('./gc-log-line')
const { V8, heapSizeLimit } = require('./heap-bounds')

/** An app may log whole documents between GCs. */
const MAX_LINE_BYTES = 2 ** 20
/** V8 repeats the last GCs when a heap is full. */
const REPEATED = '<--- Last few GCs --->'
const OUT_OF_MEMORY = /FATAL ERROR: .*(heap out of memory|heap limit)/

const OPEN_LIMIT =
  'The heap size limit is open, unless --flags or --memory say it. It is judged as if no flag ' +
    'set it, with the smallest that V8 chooses by itself and that holds what was seen, and with ' +
      'the largest; of a worker, whose code may set it, from what it held. What holds with both ' +
        'is sure, what holds with one suspected.'

const traceGc = defineSource({
  id: 'trace-gc',
  title: 'a --trace-gc log',
  accepted: 'what node --trace-gc prints, among other output',
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

/**
 * @param {import('./define-source').Input} input
 * @param {import('./lives').Lives} lives
 * @param {import('./define-source').Given} given
 */
async function readLog (input, lives, given) {
  const name = nameOf(input.name)
  /** @type {Map<string, GcLogLife>} by pid and isolate */
  const open = new Map()
  /**
   * How many isolates of a process there were: the first is the main thread.
   * @type {Map<number, number>}
   */
  const threads = new Map()
  let damaged = 0
  let others = 0
  let taken = 0
  let repeating = false
  /** The process that said it last. */
  let pid = NaN

  /** @param {number} ended */
  const closeAll = ended => {
    for (const [key, life] of open) {
      if (!key.startsWith(`${ended}:`)) continue
      life.close()
      open.delete(key)
    }
    threads.delete(ended)
  }

  /** @param {string} text */
  const take = text => {
    const line = parseGcLine(text)
    if (!line) {
      if (text.includes(REPEATED)) repeating = true
      else if (OUT_OF_MEMORY.test(text)) {
        repeating = false
        lives.notes.add(
          `process ${pid} of ${input.name} died of a full heap: ` +
            `${text.slice(text.indexOf('FATAL')).slice(0, 120)}`
        )
        closeAll(pid)
      } else if (isOtherTrace(text)) others++
      else if (isTorn(text)) damaged++
      return
    }
    taken++
    pid = line.pid
    const key = `${line.pid}:${line.isolate}`
    let life = open.get(key)
    if (life && repeating && line.atSeconds <= life.lastSeconds) return
    if (life && line.atSeconds < life.lastSeconds) {
      // A container numbers its processes alike: the next life of the same.
      closeAll(line.pid)
      life = undefined
    }
    if (!life) {
      const thread = threads.get(line.pid) ?? 0
      threads.set(line.pid, thread + 1)
      open.set(
        key,
        (life = new GcLogLife(lives, helloOf(name, input.name, line, thread, given), {
          ...given,
          nodeVersion: versionOf(given, line)
        }))
      )
    }
    if (life.isMain) {
      for (const [other, older] of open) {
        // What comes later and is still younger is no main thread, whoever had the first GC.
        if (line.atSeconds < older.lastSeconds && other.startsWith(`${line.pid}:`)) {
          life.yieldTo(older)
        }
      }
    }
    life.take(line)
  }

  const lines = new LineSplitter({ maxBytes: MAX_LINE_BYTES })
  for await (const chunk of input.bytes()) lines.push(chunk, text => { take(text) }, () => {})
  // The last line of a process that was killed.
  lines.push(Buffer.from('\n'), text => { take(text) }, () => {})
  for (const life of open.values()) life.close()
  if (taken === 0 && others > 0) {
    throw new SourceError(
      `${input.name}: lines of --trace-gc-nvp or --trace-gc-verbose; memwatch reads what ` +
        '--trace-gc prints'
    )
  }
  if (damaged > 0) {
    lives.notes.add(
      `${damaged} lines of ${input.name} are damaged, or of a form that is not known; they were ` +
        'left out'
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
 * @param {import('./gc-log-line').GcLine} line the first of the isolate
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
