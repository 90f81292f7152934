'use strict'

/**
 * Bytes that an exporter must survive: messages of agents with random changes, and other data. The
 * same seed leads to the same bytes.
 */

const { hello, frame, line, gcRow } = require('../test/support/frames')

/**
 * A small generator with a seed: mulberry32,
 * https://gist.github.com/tommyettinger/46a874533244883189143505d203312c
 */
function randomFrom (seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6D2B79F5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Values for which careless readers fail. @type {unknown[]} */
const NASTY = [
  null,
  true,
  -1,
  0,
  1e308,
  -1e308,
  2 ** 53,
  0.1,
  '',
  'x'.repeat(5000),
  'a"b\\c\nd',
  '\u0000',
  '\ud800',
  '💥',
  [],
  {},
  [[]],
  [null],
  { a: {} },
  '__proto__',
  'constructor',
  { __proto__: null, toString: 1 },
  Array(2000).fill(1),
  [1, 2, 3, 4],
  { 'new_space\n"': [1, 2, 3, 4] },
  { 'a/b': [1, 1, 1, []] }
]
const NASTY_KEYS = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  '',
  'a"b',
  'a\nb',
  'type',
  'v',
  'values',
  '\u0000'
]
/** JSON that no object can represent: duplicate keys, and a real __proto__. */
const RAW = [
  '{"v":1,"type":"frame","sequence":1,"atUnixMs":1,"uptimeSeconds":1,"values":{"__proto__":{"rssBytes":1},"rssBytes":1,"rssBytes":2}}',
  '{"v":1,"__proto__":{"type":"hello"}}',
  '[]',
  '0',
  'null',
  '""',
  '{}',
  '{"v":1}',
  '{"v":1e999}',
  '[[[[[[',
  '{"v":1,"type":{"toString":1}}',
  `${'['.repeat(20_000)}`,
  `{"v":1,"type":"frame","values":${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}}`
]

/** @param {number} seed */
function fuzzer (seed) {
  const random = randomFrom(seed)
  const below = (/** @type {number} */ n) => Math.floor(random() * n)
  const pick = (/** @type {readonly any[]} */ items) => items[below(items.length)]
  let sequence = 0

  /** A valid message of an agent. @param {number} pid */
  const sane = pid => {
    const kind = random()
    if (kind < 0.1) {
      return hello({
        pid,
        name: pick(['api', 'a"b', 'a\nb', '__proto__', 'constructor', 'x'.repeat(128)]),
        threadId: below(3),
        startedAtUnixMs: below(5)
      })
    }
    if (kind < 0.13) {
      return { type: 'bye', sequence: ++sequence, atUnixMs: below(2e12), exitCode: below(256) }
    }
    if (kind < 0.16) {
      return {
        type: 'answer',
        id: String(below(9)),
        ok: random() < 0.5,
        parts: { profile: below(1e9) },
        message: 'why'
      }
    }
    if (kind < 0.163) {
      return {
        type: 'capture',
        id: pick(['00000000-0000-4000-8000-000000000000', '../../etc', String(below(9))]),
        part: pick(['profile', '../x', ''])
      }
    }
    return frame({
      sequence: random() < 0.9 ? ++sequence : below(1e9),
      atUnixMs: below(4e12),
      uptimeSeconds: random() < 0.9 ? sequence : below(1e9),
      values: {
        rssBytes: below(1e9),
        heapUsedBytes: below(1e9),
        spaces: { new_space: [1, 2, 3, 4], old_space: [5, 6, 7, 8] },
        gc: { 'minor/ordinary': gcRow(below(100), random()) },
        eventLoopDelay: [1, 1, 1, Array(13).fill(1)]
      }
    })
  }
  /**
   * Replaces the value at a random place.
   * @param {any} value
   * @param {number} depth
   * @returns {any}
   */
  const mutate = (value, depth = 0) => {
    if (random() < 0.15 || value === null || typeof value !== 'object' || depth > 4) {
      return pick(NASTY)
    }
    const copy = Array.isArray(value) ? [...value] : { ...value }
    const keys = Object.keys(copy)
    const key = random() < 0.15 || keys.length === 0 ? pick(NASTY_KEYS) : pick(keys)
    if (random() < 0.2) delete copy[key]
    else {
      Object.defineProperty(copy, key, {
        value: mutate(copy[key] ?? pick(NASTY), depth + 1),
        enumerable: true,
        configurable: true,
        writable: true
      })
    }
    return copy
  }
  /** Flips, removes or repeats bytes. @param {Buffer} bytes */
  const damage = bytes => {
    const changed = Buffer.from(bytes)
    for (let i = below(4); i >= 0 && changed.length > 0; i--) {
      changed[below(changed.length)] = below(256)
    }
    return random() < 0.3 ? changed.subarray(0, below(changed.length + 1)) : changed
  }

  return {
    random,
    below,
    pick,
    /** One line, usually with its newline. @param {number} pid */
    line (pid) {
      const kind = random()
      const text =
        kind < 0.25
          ? line(sane(pid))
          : kind < 0.7
            ? line(mutate(sane(pid)))
            : kind < 0.75
              ? pick(RAW)
              : undefined
      if (text !== undefined) return Buffer.from(text + (random() < 0.97 ? '\n' : ''))
      if (kind < 0.97) {
        return Buffer.concat([damage(Buffer.from(line(sane(pid)))), Buffer.from('\n')])
      }
      return Buffer.concat([
        Buffer.from(Array.from({ length: below(300) }, () => below(256))),
        Buffer.from(random() < 0.5 ? '\n' : '')
      ])
    }
  }
}

module.exports = { fuzzer, NASTY_KEYS }
