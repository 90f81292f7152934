'use strict'

const path = require('node:path')
const { isMainThread } = require('node:worker_threads')
const {
  clearImmediate,
  clearInterval,
  nowMs,
  nowUnixMs,
  parseJson,
  setImmediate,
  setInterval,
  stringifyJson
} = require('./primordials')
const { PROTOCOL_VERSION, MAX_LINE_BYTES, fields } = require('./frame')
const { defaultSocketPath, isOwnFolder, isOwnSocket } = require('./config')
const { Guard, attempt } = require('./guard')
const { gc, noOwnGc } = require('./collect/gc')

/**
 * A frame's values before anything is read: each field is there, and none has a value, so that all
 * frames have one shape, which V8 fills and writes without looking names up. Parsed, as an object
 * that is put together name by name becomes a slow dictionary.
 * @type {import('./frame').Frame['values']}
 */
const NO_VALUES = parseJson(`{${Object.keys(fields).map(name => `"${name}":null`)}}`)
for (const name in NO_VALUES) NO_VALUES[/** @type {keyof typeof fields} */ (name)] = undefined

/**
 * @param {string} type
 * @param {object} content
 * @returns {string} a line of the wire contract; frames have a form of their own
 */
const encode = (type, content) => stringifyJson({ v: PROTOCOL_VERSION, type, ...content }) + '\n'

/**
 * Watches this isolate: one unref'd timer, collect -> encode -> send.
 * @param {import('./config').Config} config
 * @param {ReturnType<typeof import('./collect/gc-observer').gcObserver>} gcs
 * @returns {{ load: () => Generator<unknown, void>, run: () => void, bye: (exitCode: number) =>
 *   void, stop: () => void }} load: what it needs, piece by piece; run: the first frame, and from
 *   then on; bye: the last one
 */
function start (config, gcs) {
  const guard = new Guard()
  const wrap = guard.wrap.bind(guard)
  let collectSeconds = 0
  /**
   * Guarded, and counted as time that the agent took.
   * @param {string} what
   * @param {() => void} work
   */
  const metered = (what, work) => wrap(what, () => {
    const began = nowMs()
    try {
      work()
    } finally {
      collectSeconds += (nowMs() - began) / 1000
    }
  })
  const frameMs = config.intervalSeconds * 1000
  const ownGc = noOwnGc()
  const pauses = gc(gcs, wrap, ownGc)
  /** @type {import('./transport').Transport | undefined} */
  let transport
  /** @type {import('./collect/collector').Collector[]} */
  const collectors = [pauses]

  /** @type {import('./allocator-access').AllocatorAccess | undefined} */
  let access
  const overSocket = 'path' in config.socket ? config.socket : undefined
  /** @type {import('./commands').Commands | undefined} */
  let commands

  // In the system's temporary folder anybody could have been there first, to read along.
  const isSafe = () =>
    overSocket?.path !== defaultSocketPath() || isOwnFolder(path.dirname(defaultSocketPath()))

  const connect = wrap('connect', () => {
    if (config.allocatorAccess !== 'off' && isMainThread) {
      access ??= require('./allocator-access').allocatorAccess()
    }
    const { Transport } = require('./transport')
    transport ??= new Transport(config.socket, begin, isSafe)
    transport.tick(nowMs() / 1000)
  })

  /** Up to its last brace: what depends on the connection follows. @type {string | undefined} */
  let helloStart
  /**
   * @param {object} [ofConnection]
   * @returns {string}
   */
  const hello = (ofConnection = {}) => {
    helloStart ??= encode('hello', {
      ...require('./identity').hello(config),
      ...(isMainThread && { cgroup: require('./collect/memory-cgroup').memoryCgroup() }),
      intervalSeconds: config.intervalSeconds,
      ...(access && { allocatorAccess: access.by })
    }).slice(0, -2)
    const rest = stringifyJson(ofConnection).slice(1)
    return `${helloStart}${rest === '}' ? '' : ','}${rest}\n`
  }

  /** What the operator allows to be asked for. @returns {import('./frame').CommandName[]} */
  const allowed = () => {
    /** @type {import('./frame').CommandName[]} */
    const names = []
    if (mayTrim()) names.push('look', 'trim')
    if (config.captures) names.push('capture')
    if (config.forcedGc) names.push('force_gc')
    return names
  }
  const mayTrim = () => config.allocatorAccess === 'trim' && access !== undefined

  /** Commands are trusted over a Unix socket only: any process can reach a TCP port. */
  const mayBeTrusted = () => {
    if (!overSocket) return false
    if (config.tokenFile) return true
    try {
      return isOwnSocket(overSocket.path)
    } catch {
      return false
    }
  }

  /** @returns {import('./transport').Session} */
  const begin = wrap('begin', () => {
    const names = mayBeTrusted() ? allowed() : []
    if (names.length === 0) return { hello: () => hello() }
    const nonce = config.tokenFile ? require('./proof').newNonce() : undefined
    const connection = { nonce, sequence: 0 }
    return {
      hello: () => hello({ commands: names, nonce }),
      execute: wrap('command', (line, answer) => execute(line, answer, connection))
    }
  })

  /**
   * @param {string} line
   * @param {(line: string) => void} answer
   * @param {import('./commands').Connection} connection
   * @returns {boolean} whether it was a trusted command
   */
  const execute = (line, answer, connection) => {
    const address = /** @type {{ path: string }} */ (overSocket)
    // Loaded when something is asked for.
    commands ??= require('./commands').commands({
      address,
      access: mayTrim() ? access : undefined,
      captures: config.captures
        ? require('./capture').captures({
          address,
          allowSnapshot: config.allowSnapshot,
          counts: pauses
        })
        : undefined,
      forcedGc: config.forcedGc
        ? new (require('./forced-gc').ForcedGc)(ownGc, pauses)
        : undefined,
      tokenFile: config.tokenFile,
      look: () => send(nowMs() / 1000, true)
    })
    return commands.execute(line, found => answer(encode('answer', found)), connection)
  }
  let count = 0
  let sequence = 0
  let framesTooLong = 0
  /** @type {NodeJS.Immediate | undefined} */
  let immediate

  // What was read for a frame that was too long goes with the next one.
  /** @type {import('./frame').Frame['values']} */
  let unsent = { ...NO_VALUES }

  /**
   * @param {number} nowSeconds when the frame was due and its timer fired
   * @param {boolean} [look] with all that is dear
   */
  const send = (nowSeconds, look) => {
    const values = unsent
    const tick = { count: count++, nowSeconds, look }
    // In one function, and the line below without copies: what runs once a second is cold, and each
    // function more is dear.
    for (let i = 0; i < collectors.length; i++) {
      try {
        collectors[i].read(values, tick)
      } catch (error) {
        guard.caught('collect', error)
      }
    }
    values.agentErrors = guard.errors
    values.framesDropped = framesTooLong + (transport?.dropped ?? 0)
    values.collectSeconds = collectSeconds
    sequence++
    const line =
      stringifyJson({
        v: PROTOCOL_VERSION,
        type: 'frame',
        sequence,
        atUnixMs: nowUnixMs(),
        uptimeSeconds: Math.round(nowMs()) / 1000,
        values
      }) + '\n'
    if (line.length <= MAX_LINE_BYTES && transport) {
      unsent = { ...NO_VALUES }
      // What covers the time since the last frame goes on while frames wait: those may be given up.
      if (transport.write(line)) for (let i = 0; i < collectors.length; i++) collectors[i].sent?.()
    } else {
      framesTooLong++
    }
  }

  let dueSeconds = 0
  const tick = metered('tick', () => {
    transport?.tick(dueSeconds)
    send(dueSeconds)
  })
  // Node hands out the GCs of a turn before its immediates: read in one, a frame knows of all that
  // were before it. Without arguments: Node.js hands those on by the iterator of arrays, which the
  // app may replace.
  const due = () => {
    dueSeconds = nowMs() / 1000
    immediate = setImmediate(tick)
  }
  const bye = wrap('bye', (/** @type {number} */ exitCode) => {
    if (!transport) connect()
    transport?.finish()
    send(nowMs() / 1000)
    transport?.write(encode('bye', { sequence: ++sequence, atUnixMs: nowUnixMs(), exitCode }))
  })

  /** Before that of GCs, which stays the last. */
  const add = wrap('start', (/** @type {import('./collect/collector').Collector} */ collector) => {
    collectors.splice(-1, 0, collector)
    collector.start?.()
  })
  const load = function * () {
    yield require('node:net')
    yield require('./transport')
    yield connect()
    const loading = require('./collect').collectors({
      isMainThread,
      frameMs,
      guarded: wrap,
      metered,
      majors: pauses.majors,
      ownGc,
      access,
      memoryLimitBytes: config.memoryLimitBytes
    })
    const next = wrap('load', () => loading.next())
    for (let piece = next(); piece && !piece.done; piece = next()) {
      if (piece.value) add(piece.value)
      yield
    }
    // The hello is as dear as all collectors together: what it is made of is fetched first.
    yield require('./identity')
    yield process.allowedNodeEnvironmentFlags
    if (config.tokenFile) yield require('node:crypto')
    yield wrap('hello', hello)()
  }
  /** @type {NodeJS.Timeout | undefined} */
  let timer

  return {
    load,
    run () {
      due()
      timer = setInterval(due, frameMs)
    },
    bye,
    stop: wrap('stop', () => {
      clearInterval(timer)
      clearImmediate(immediate)
      for (const { stop } of collectors) if (stop) attempt('stop', stop)
      transport?.stop()
    })
  }
}

module.exports = { start }
