'use strict'

const {
  GC_PAUSE_BOUNDS_SECONDS, DELAY_BOUNDS_SECONDS, NO_VALUES, fields
} = require('@memwatch/agent/protocol/frame')
const {
  APP_VERSION, HOST_NAME, KEY, POD_NAMES, isPlainText
} = require('@memwatch/agent/protocol/text-rules')

/**
 * Rebuilds messages by the rules of the wire contract. A rebuilt message contains only what the
 * contract allows: no unknown field, no object of the parsed line, no text that is not plain, no
 * number beyond MOST_NUMBER. All code after decoding relies on that.
 */

/**
 * Largest accepted number, and largest accepted sum of a map. A double cannot represent all larger
 * integers.
 */
const MOST_NUMBER = 2 ** 53
/** Upper bound of the keys of a map field: spaces, GC kinds and resource types are few. */
const MOST_KEYS = 64
/** Two labels of a GC row: kind/cause. */
const GC_KEY = /^[a-z0-9_]{1,32}\/[a-z0-9_]{1,32}$/
/**
 * Upper bound of cached keys. A set finds a known key in a third of the time that the pattern
 * takes, and every frame has some 40 keys.
 */
const MOST_MATCHED = 1000
const ENVIRONMENT_KEY = /^[A-Za-z][A-Za-z0-9_]{0,63}$/

const MOST_TEXTS = 1000
const MOST_TEXT_LENGTH = 4096
/**
 * Upper bound of the characters of all texts of a list: Node 26 allows 310 flags of 6,000
 * characters in all.
 */
const MOST_LIST_LENGTH = 16_384

/** An agent with a longer interval between its frames would look as if it were gone. */
const MOST_INTERVAL_SECONDS = 600
/**
 * End of the year 9999. Later dates have another text form, and above 8.64e15 a Date is invalid.
 */
const MOST_UNIX_MS = 253_402_300_799_999
/** Upper bound of an uptime: a century, so that dates stay valid. */
const MOST_UPTIME_SECONDS = 3_200_000_000

const VERSION = /^[0-9A-Za-z][0-9A-Za-z.+-]{0,63}$/
const WORD = /^[a-z][a-z0-9_]{0,31}$/
const FLAG = /^--?[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/
/** Random number that an agent chooses for a connection. */
const NONCE = /^[0-9a-f]{32}$/
/** An inode in decimal. */
const INODE = /^[1-9]\d{0,19}$/
/** Ids of commands are UUIDs of the exporter. */
const ID = /^[A-Za-z0-9-]{1,64}$/

/**
 * Function that returns a rebuilt value, or undefined if the value breaks the contract.
 * @template [T=any]
 * @typedef {(value: unknown) => T | undefined} Rebuild
 */

/**
 * @param {unknown} value
 * @returns {value is Record<string, unknown>}
 */
const isObject = value => typeof value === 'object' && value !== null && !Array.isArray(value)
/**
 * @param {unknown} value
 * @returns {value is number}
 */
const isNumber = value => typeof value === 'number' && value >= 0 && value <= MOST_NUMBER

/** @type {Rebuild<number>} */
const number = value => isNumber(value) ? value : undefined
/**
 * Rule of counters: a value above MOST_NUMBER becomes MOST_NUMBER. An app that allocates 1 GB/s
 * exceeds MOST_NUMBER after a hundred days, and must still be watched.
 * @type {Rebuild<number>}
 */
const counter = value =>
  typeof value === 'number' && value >= 0 && value < Infinity
    ? Math.min(value, MOST_NUMBER)
    : undefined
/**
 * @param {number} most
 * @returns {Rebuild<number>}
 */
const numberUpTo = most => value => isNumber(value) && value <= most ? value : undefined
/**
 * @param {number} most
 * @param {number} [least]
 * @returns {Rebuild<number>}
 */
const integer =
  (most, least = 0) =>
    value =>
      typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most
        ? value
        : undefined
/** @type {Rebuild<boolean>} */
const boolean = value => typeof value === 'boolean' ? value : undefined
/**
 * @param {number} most characters
 * @param {number} [least]
 * @returns {Rebuild<string>}
 */
const text =
  (most, least = 0) =>
    value =>
      typeof value === 'string' && value.length >= least && value.length <= most && isPlainText(value)
        ? value
        : undefined
/**
 * @param {RegExp} pattern
 * @returns {Rebuild<string>}
 */
const matching = pattern => value =>
  typeof value === 'string' && pattern.test(value) ? value : undefined

/**
 * @param {Rebuild<string>} item
 * @param {number} [most] items
 * @returns {Rebuild<string[]>}
 */
const texts = (item, most = MOST_TEXTS) => value => {
  if (!Array.isArray(value) || value.length > most) return undefined
  let length = 0
  const kept = []
  for (const of of value) {
    const one = item(of)
    if (one === undefined || (length += one.length) > MOST_LIST_LENGTH) return undefined
    kept.push(one)
  }
  return kept
}

/** @type {Rebuild<Record<string, string>>} */
function environment (value) {
  if (!isObject(value)) return undefined
  const keys = Object.keys(value)
  if (keys.length > MOST_KEYS || !keys.every(key => ENVIRONMENT_KEY.test(key))) return undefined
  const kept = texts(plain)(Object.values(value))
  return kept && Object.fromEntries(keys.map((key, i) => [key, kept[i]]))
}

/**
 * @param {RegExp} pattern
 * @returns {(key: string) => boolean}
 */
function keyMatcher (pattern) {
  /** @type {Set<string>} */
  const matched = new Set()
  return key => {
    if (matched.has(key)) return true
    if (!pattern.test(key)) return false
    if (matched.size < MOST_MATCHED) matched.add(key)
    return true
  }
}

/**
 * Numbers by key. Their sum is at most MOST_NUMBER, because consumers add them up.
 * @param {(key: string) => boolean} isKey
 * @returns {Rebuild<Record<string, number>>}
 */
const counts = isKey => value => {
  if (!isObject(value)) return undefined
  /** @type {Record<string, number>} */
  const kept = {}
  let keys = 0
  let sum = 0
  for (const key in value) {
    const count = value[key]
    if (++keys > MOST_KEYS || !isNumber(count) || !isKey(key)) return undefined
    kept[key] = count
    sum += count
  }
  return sum <= MOST_NUMBER ? kept : undefined
}

/**
 * Rows by key. The sum of their values is at most MOST_NUMBER.
 * @template {any[]} Row
 * @param {(key: string) => boolean} isKey
 * @param {Rebuild<Row>} row
 * @param {(row: Row) => number} sumOf reads the part of a row that counts for the sum
 * @returns {Rebuild<Record<string, Row>>}
 */
const rows = (isKey, row, sumOf) => value => {
  if (!isObject(value)) return undefined
  /** @type {Record<string, Row>} */
  const kept = {}
  let keys = 0
  let sum = 0
  for (const key in value) {
    const one = row(value[key])
    if (++keys > MOST_KEYS || one === undefined || !isKey(key)) return undefined
    kept[key] = one
    sum += sumOf(one)
  }
  return sum <= MOST_NUMBER ? kept : undefined
}

/** @type {Rebuild<import('@memwatch/agent/protocol/frame').SpaceRow>} */
function spaceRow (value) {
  if (!Array.isArray(value) || value.length !== 4) return undefined
  // Rows are read by index here and below: destructuring (`[used] = value`) takes longer than all
  // the checks.
  const used = value[0]
  const size = value[1]
  const available = value[2]
  const physical = value[3]
  return isNumber(used) && isNumber(size) && isNumber(available) && isNumber(physical)
    ? [used, size, available, physical]
    : undefined
}

/**
 * @param {number} length
 * @returns {Rebuild<number[]>}
 */
const buckets = length => value => {
  if (!Array.isArray(value) || value.length !== length) return undefined
  const kept = value.slice()
  let sum = 0
  for (let i = 0; i < length; i++) {
    const count = kept[i]
    if (typeof count !== 'number' || !(count >= 0)) return undefined
    sum += count
  }
  return sum <= MOST_NUMBER ? kept : undefined
}

/**
 * @param {number} bounds number of bounds of the histogram
 * @returns {Rebuild<import('@memwatch/agent/protocol/frame').PauseRow>}
 */
const histogramRow = bounds => {
  const rebuildBuckets = buckets(bounds + 1)
  return value => {
    if (!Array.isArray(value) || value.length !== 4) return undefined
    const count = value[0]
    const sumSeconds = value[1]
    const longestSeconds = value[2]
    const kept =
      isNumber(count) && isNumber(sumSeconds) && isNumber(longestSeconds)
        ? rebuildBuckets(value[3])
        : undefined
    return kept && [count, sumSeconds, longestSeconds, kept]
  }
}

const plain = text(MOST_TEXT_LENGTH)
const isKey = keyMatcher(KEY)
const byKey = counts(isKey)

/** @type {Record<import('@memwatch/agent/protocol/frame').Shape, Rebuild>} */
const shapes = {
  number,
  counts: byKey,
  spaces: rows(
    isKey,
    spaceRow,
    row => row[0] + row[1] + row[2] + row[3]
  ),
  gc: rows(
    keyMatcher(GC_KEY),
    histogramRow(GC_PAUSE_BOUNDS_SECONDS.length),
    row => row[0] + row[1]
  ),
  delay: histogramRow(DELAY_BOUNDS_SECONDS.length)
}

/**
 * Rules by field. The object has no prototype: a field called `constructor` must be unknown, not a
 * function.
 * @type {Record<string, Rebuild>}
 */
const valueRebuilds = Object.assign(
  Object.create(null),
  Object.fromEntries(
    Object.entries(fields).map(([name, { shape, kind }]) => [
      name,
      shape === 'number' && kind === 'counter' ? counter : shapes[shape]
    ])
  )
)

/** Fields that hold a single number, as most fields do. @type {Record<string, boolean>} */
const numberFields = Object.create(null)
for (const name of Object.keys(fields)) {
  if (fields[/** @type {keyof typeof fields} */ (name)].shape === 'number') numberFields[name] = true
}

/**
 * @param {unknown} values of a frame
 * @returns {import('@memwatch/agent/protocol/frame').Values | undefined} an object with every field
 *   of the contract; fields that the frame lacks are undefined. The result is undefined if the
 *   value of a known field breaks the contract
 */
function rebuildValues (values) {
  if (!isObject(values)) return undefined
  /** @type {Record<string, unknown>} */
  const kept = { ...NO_VALUES }
  for (const name in values) {
    const value = values[name]
    if (isNumber(value) && numberFields[name]) {
      kept[name] = value
      continue
    }
    const rebuild = valueRebuilds[name]
    if (rebuild === undefined) continue
    const one = rebuild(value)
    if (one === undefined) return undefined
    kept[name] = one
  }
  return kept
}

/**
 * @param {Record<string, Rebuild>} required
 * @param {Record<string, Rebuild>} [optional]
 * @returns {Rebuild} function that rebuilds an object with these fields
 */
function fieldsOf (required, optional = {}) {
  const all = [
    ...Object.entries(required).map(([name, rebuild]) => ({ name, rebuild, isRequired: true })),
    ...Object.entries(optional).map(([name, rebuild]) => ({ name, rebuild, isRequired: false }))
  ]
  return value => {
    if (!isObject(value)) return undefined
    /** @type {Record<string, unknown>} */
    const kept = {}
    for (const { name, rebuild, isRequired } of all) {
      if (value[name] === undefined && !isRequired) continue
      const one = rebuild(value[name])
      if (one === undefined) return undefined
      kept[name] = one
    }
    return kept
  }
}

const unixMs = numberUpTo(MOST_UNIX_MS)
const whole = integer(MOST_NUMBER)

const hello = fieldsOf(
  {
    agent: matching(VERSION),
    pid: integer(2 ** 32),
    threadId: whole,
    startedAtUnixMs: unixMs,
    name: text(128, 1),
    intervalSeconds: value =>
      isNumber(value) && value > 0 && value <= MOST_INTERVAL_SECONDS ? value : undefined,
    node: matching(VERSION),
    v8: matching(VERSION),
    platform: matching(WORD),
    arch: matching(WORD),
    libc: matching(WORD),
    allocator: matching(WORD),
    pointerCompression: boolean,
    execArgv: texts(plain),
    nodeOptions: texts(plain),
    allowedFlags: texts(matching(FLAG)),
    mallocEnv: environment
  },
  {
    appVersion: matching(APP_VERSION),
    host: matching(HOST_NAME),
    pod: fieldsOf(
      {},
      {
        uid: matching(POD_NAMES.uid),
        name: matching(POD_NAMES.name),
        namespace: matching(POD_NAMES.namespace),
        container: matching(POD_NAMES.container),
        injected: boolean
      }
    ),
    cgroup: matching(INODE),
    allocatorPath: plain,
    agentFolder: plain,
    resourceLimits: byKey,
    hostMemoryBytes: number,
    startTimeTicks: whole,
    constrainedBytes: number,
    cores: number,
    allocatorAccess: matching(WORD),
    gcCounter: matching(WORD),
    gcHooksMissing: matching(WORD),
    commands: texts(matching(WORD), 16),
    nonce: matching(NONCE)
  }
)

const answer = fieldsOf({ id: matching(ID), ok: boolean }, {
  reason: matching(WORD),
  message: text(1024),
  parts: counts(keyMatcher(WORD)),
  predictedBytes: number,
  headroomBytes: number,
  blockedSeconds: number,
  rssBeforeBytes: number,
  rssAfterBytes: number
})

const capture = fieldsOf({ id: matching(ID), part: matching(WORD) })

const bye = fieldsOf({ sequence: whole, atUnixMs: unixMs, exitCode: integer(2 ** 32, -(2 ** 31)) })

/** Rules of a frame without its `values`, whose rejection has a reason of its own. */
const frame = fieldsOf({
  sequence: whole,
  atUnixMs: unixMs,
  uptimeSeconds: numberUpTo(MOST_UPTIME_SECONDS)
})

module.exports = {
  rebuildValues,
  rebuilds: { hello, answer, capture, bye, frame },
  fieldsOf,
  number,
  integer,
  matching,
  text,
  texts,
  isObject,
  MOST_NUMBER
}
