'use strict'

const { fields, DELAY_BOUNDS_SECONDS } = require('@memwatch/agent/protocol/frame')
const { Target } = require('@memwatch/engine/history/target')
const { signalsOf } = require('@memwatch/engine/signals/index')
const { judge } = require('@memwatch/engine/verdicts/judge')
const { diagnoses } = require('@memwatch/engine/diagnoses/index')
const { GcCounters } = require('./gc-counters')

/**
 * Finds the diagnoses that a source supports: all diagnoses evaluate some minutes of a healthy
 * app with the fields of the source. A diagnosis that answers `unknown` is not supported.
 */

const MIB = 2 ** 20
const SECONDS = 200

/** @type {WeakMap<import('./define-source').Source, Map<string, Map<string, string>>>} */
const known = new WeakMap()

/**
 * @param {import('./define-source').Source} source
 * @param {import('./define-source').Given} [given]
 * @returns {Map<string, string>} reasons by the id of an unsupported diagnosis, as sentences
 *   without a full stop
 */
function cannotTell (source, given = {}) {
  const key = String(given.containerLimitBytes !== undefined)
  const found = known.get(source) ?? new Map()
  known.set(source, found)
  if (!found.has(key)) found.set(key, compute(source, given))
  return found.get(key)
}

/**
 * @param {import('./define-source').Source} source
 * @param {import('./define-source').Given} given
 */
function compute (source, given) {
  const names = [
    ...source.fields,
    ...(source.bounds ? ['heapSizeLimitBytes'] : []),
    ...(given.containerLimitBytes === undefined ? [] : ['containerLimitBytes'])
  ]
  const target = healthy(
    new Set(names),
    source.tellsMachine ? { hostMemoryBytes: 16 * 1024 * MIB } : {}
  )
  const window = target.window()
  const signals = window && /** @type {Record<string, number | null>} */ (signalsOf(window))
  /** @type {Map<string, string>} */
  const beyond = new Map()
  for (const diagnosis of diagnoses) {
    const { judgement } = judge(diagnosis, /** @type {any} */ (signals), target.hello)
    if (judgement.state !== 'unknown') continue
    const absent = (/** @type {readonly string[]} */ names) => names.filter(name => signals?.[name] === null)
    const required = absent(diagnosis.requires)
    const missing = required.length > 0 ? required : absent(diagnosis.uses)
    beyond.set(
      diagnosis.id,
      `${source.title} lacks ` +
        `${missing.length > 3
          ? `${missing.slice(0, 3).join(', ')} and ${missing.length - 3} ` +
          'more'
            : missing.join(', ')}`
    )
  }
  return beyond
}

/**
 * Creates a target with the frames of a healthy app, which contain only these fields.
 * @param {Set<string>} names
 * @param {Partial<import('@memwatch/agent/protocol/frame').Hello>} machine
 */
function healthy (names, machine) {
  const hello = { ...HELLO, ...machine }
  const target = new Target({ hello, name: 'healthy', thread: 'main' })
  const gc = new GcCounters()
  for (let second = 1; second <= SECONDS; second++) {
    for (let i = 0; i < 4; i++) gc.add('minor', 'ordinary', 0.001)
    if (second % 5 === 0) gc.add('major', 'ordinary', 0.005)
    const values = valuesAt(second, gc)
    target.take(
      {
        sequence: second,
        atUnixMs: second * 1000,
        uptimeSeconds: second,
        values: Object.fromEntries(Object.entries(values).filter(([name]) => names.has(name)))
      },
      second * 1000
    )
  }
  return target
}

/**
 * @param {number} second
 * @param {GcCounters} gc
 * @returns {import('@memwatch/agent/protocol/frame').Values} values of all fields
 */
function valuesAt (second, gc) {
  // The values are nearly constant, but vary enough for a line.
  const wobble = second % 7
  /** @type {Record<string, any>} */
  const values = {}
  for (const [name, { kind, shape, unit }] of Object.entries(fields)) {
    if (shape === 'number') {
      values[name] =
        kind === 'counter' ? second * 0.01 : unit === 'bytes' ? 8 * MIB + wobble * 1024 : 10
    }
  }
  return {
    ...values,
    rssBytes: 90 * MIB + wobble * 4096,
    rssAnonBytes: 60 * MIB + wobble * 4096,
    heapUsedBytes: 24 * MIB,
    heapTotalBytes: 30 * MIB,
    heapPhysicalBytes: 28 * MIB,
    heapSizeLimitBytes: 259 * MIB,
    liveHeapBytes: 20 * MIB + wobble * 4096,
    liveHeapMajors: Math.floor(second / 5),
    containerLimitBytes: 512 * MIB,
    nativeContexts: 1,
    bufferSlabsFollowed: second,
    bufferSlabsKept: 0,
    gc: gc.rows,
    gcObserverStopped: 0,
    gcUnobservedSeconds: 0,
    spaces: {
      new_space: [MIB / 2, 2 * MIB, MIB / 2, 2 * MIB],
      old_space: [18 * MIB, 20 * MIB, 0, 20 * MIB],
      large_object_space: [MIB, MIB, 0, MIB],
      code_space: [MIB, MIB, 0, MIB]
    },
    eventLoopDelay: [
      second,
      second * 0.001,
      0.002,
      new Array(DELAY_BOUNDS_SECONDS.length + 1).fill(second)
    ],
    eventLoopActiveSeconds: second * 0.2,
    eventLoopIdleSeconds: second * 0.8,
    resources: { TCPSocketWrap: 3 + (wobble % 2), Timeout: 2 },
    descriptors: { socket: 6, pipe: 8, file: 4, eventpoll: 3, eventfd: 3 },
    addons: {},
    residentBytes: {
      malloc_heap: 10 * MIB,
      malloc_arenas: 2 * MIB,
      malloc_mapped: 0,
      webassembly: 0,
      stacks: MIB,
      other: 30 * MIB
    },
    allocatorBytes: undefined
  }
}

/** @type {import('@memwatch/agent/protocol/frame').Hello} */
const HELLO = Object.freeze({
  agent: '',
  pid: 1,
  threadId: 0,
  startedAtUnixMs: 0,
  name: 'healthy',
  intervalSeconds: 1,
  node: '20.0.0',
  v8: '11.3',
  platform: 'linux',
  arch: 'x64',
  libc: 'glibc',
  allocator: 'glibc',
  pointerCompression: false,
  execArgv: [],
  nodeOptions: [],
  mallocEnv: {},
  allowedFlags: [],
  constrainedBytes: 512 * MIB,
  semiSpaceMaxBytes: MIB
})

module.exports = { cannotTell }
