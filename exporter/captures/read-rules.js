'use strict'

const fs = require('node:fs')
const { closest, distance } = require('fastest-levenshtein')
const { diagnoses } = require('@memwatch/engine/diagnoses/index')
const { figures } = require('@memwatch/engine/signals/index')
const { readDuration } = require('@memwatch/engine/text/duration')
const { kinds } = require('./kinds')
const { defaultRules } = require('./rules')

/** Size limit of the rules, far larger than any table written by hand. */
const MOST_BYTES = 65_536
const MOST_RULES = 100
const DEFAULT_EVERY = '1h'
const NAME = /^[a-z0-9][a-z0-9-]{0,63}$/
const STATES = ['suspected', 'confirmed']
/** Allowed keys of a rule and of its conditions. */
const KEYS = ['name', 'when', 'what', 'every', 'seconds', 'off']
const CONDITIONS = Object.freeze({
  diagnosis: ['diagnosis', 'state'],
  signal: ['signal', 'above', 'below', 'for'],
  runwayBelow: ['runwayBelow'],
  death: ['death']
})

/**
 * @typedef {import('./rules').CaptureRule} CaptureRule
 * @typedef {readonly import('../deaths/reasons').ReasonName[]} Reasons
 */

/**
 * Reads an operator's rules of captures, and adds them to the built-in rules. A rule with the name
 * of a built-in rule replaces it, or disables it.
 * @param {string} text a JSON array of rules, or the path of a file that contains one
 * @param {Reasons} reasons known causes of death
 * @returns {readonly CaptureRule[]} rules in the order in which they are applied
 * @throws {Error} names the rule, the key, the value and the nearest known name
 */
function readRules (text, reasons) {
  const given = parseRules(text.trimStart().startsWith('[') ? text : readFile(text), reasons)
  const names = given.map(({ name }) => name)
  for (const [i, name] of names.entries()) {
    if (names.indexOf(name) < i) throw new Error(`rule ${name}: two rules have this name`)
  }
  for (const { name, off } of given) {
    if (off) expectKnown(name, defaultRules.map(({ name }) => name), `rule ${name}: off`)
  }
  const kept = defaultRules.map(rule => given.find(({ name }) => name === rule.name) ?? rule)
  const added = given.filter(({ name }) => !kept.some(rule => rule.name === name))
  return Object.freeze(/** @type {CaptureRule[]} */ (
    [...kept, ...added].filter(rule => !('off' in rule && rule.off))
  ))
}

/** @param {string} file */
function readFile (file) {
  const stats = fs.statSync(file)
  if (!stats.isFile() || stats.size > MOST_BYTES) {
    throw new Error(`expected a file of at most ${MOST_BYTES} bytes, got ${file}`)
  }
  return fs.readFileSync(file, 'utf8')
}

/**
 * @param {string} text
 * @param {Reasons} reasons
 * @returns {((CaptureRule & { off?: false }) | { name: string, off: true })[]}
 */
function parseRules (text, reasons) {
  const content = JSON.parse(text)
  if (!Array.isArray(content) || content.length > MOST_RULES) {
    throw new Error(`expected an array of at most ${MOST_RULES} rules, such as ` +
      '[{"name": "my-rule", "when": {"diagnosis": "js-heap-leak"}, "what": "heap_profile"}]')
  }
  return content.map((rule, i) => {
    const { name } = expectObject(rule, `rule ${i + 1}`)
    if (typeof name !== 'string' || !NAME.test(name)) {
      throw new Error(`rule ${i + 1}: name: expected lower-case letters, digits and hyphens, got ` +
        JSON.stringify(name))
    }
    return parseRule(rule, { name, at: `rule ${name}`, reasons })
  })
}

/**
 * @param {Record<string, any>} rule
 * @param {{ name: string, at: string, reasons: Reasons }} options at: name of the rule in errors
 */
function parseRule (rule, { name, at, reasons }) {
  for (const key of Object.keys(rule)) expectKnown(key, KEYS, at)
  if (rule.off !== undefined) {
    if (rule.off !== true || Object.keys(rule).length > 2) {
      throw new Error(`${at}: off: expected true, and no other key than the name`)
    }
    return { name, off: /** @type {const} */ (true) }
  }
  const what = /** @type {import('./kinds').KindName} */ (
    expectKnown(rule.what, Object.keys(kinds), `${at}: what`))
  const { seconds } = rule
  const { mostSeconds } = kinds[what]
  if (seconds !== undefined && !(seconds > 0 && seconds <= mostSeconds)) {
    throw new Error(mostSeconds === 0
      ? `${at}: seconds: expected none, because a ${what} takes no time`
      : `${at}: seconds: expected a number up to ${mostSeconds}, got ${JSON.stringify(seconds)}`)
  }
  return Object.freeze({
    name,
    when: Object.freeze(
      parseCondition(expectObject(rule.when, `${at}: when`), `${at}: when`, reasons)
    ),
    what,
    everySeconds: readTime(rule.every ?? DEFAULT_EVERY, `${at}: every`),
    ...(seconds !== undefined && { seconds })
  })
}

/**
 * @param {Record<string, any>} when
 * @param {string} at
 * @param {Reasons} reasons
 * @returns {import('./rules').When}
 */
function parseCondition (when, at, reasons) {
  const kind = Object.keys(CONDITIONS).find(key => key in when)
  const known = kind === undefined
    ? Object.keys(CONDITIONS)
    : CONDITIONS[/** @type {keyof typeof CONDITIONS} */ (kind)]
  for (const key of Object.keys(when)) expectKnown(key, known, at)
  switch (kind) {
    case 'diagnosis': return {
      diagnosis: expectKnown(when.diagnosis, diagnoses.map(({ id }) => id), `${at}: diagnosis`),
      state: /** @type {'suspected' | 'confirmed'} */ (
        expectKnown(when.state ?? 'suspected', STATES, `${at}: state`))
    }
    case 'signal': return parseSignal(when, at)
    case 'runwayBelow': return { runwayBelowSeconds: readTime(when.runwayBelow, `${at}: runwayBelow`) }
    case 'death': return {
      death: [when.death].flat().map(reason => /** @type {Reasons[number]} */ (
        expectKnown(reason, reasons, `${at}: death`)))
    }
    default: throw new Error(`${at}: expected one of ${known.join(', ')}`)
  }
}

/**
 * @param {Record<string, any>} when
 * @param {string} at
 * @returns {import('./rules').BySignal}
 */
function parseSignal (when, at) {
  const { above, below } = when
  for (const [key, value] of Object.entries({ above, below })) {
    if (value !== undefined && !Number.isFinite(value)) {
      throw new Error(`${at}: ${key}: expected a number, got ${JSON.stringify(value)}`)
    }
  }
  if (above === undefined && below === undefined) {
    throw new Error(`${at}: expected above or below beside the signal`)
  }
  return {
    signal: /** @type {import('@memwatch/engine/signals/index').FigureName} */ (
      expectKnown(when.signal, Object.keys(figures), `${at}: signal`)),
    ...(above !== undefined && { above }),
    ...(below !== undefined && { below }),
    forSeconds: when.for === undefined ? 0 : readTime(when.for, `${at}: for`)
  }
}

/**
 * @param {unknown} value a duration in the form of options, or a number of seconds
 * @param {string} at
 */
function readTime (value, at) {
  try {
    return readDuration(String(value))
  } catch (error) {
    throw new Error(`${at}: ${/** @type {Error} */ (error).message}`)
  }
}

/**
 * @param {unknown} value
 * @param {string} at
 * @returns {Record<string, any>}
 */
function expectObject (value, at) {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    throw new Error(`${at}: expected an object, got ${JSON.stringify(value)}`)
  }
  return value
}

/**
 * @param {unknown} value
 * @param {readonly string[]} known
 * @param {string} at
 * @returns {string}
 */
function expectKnown (value, known, at) {
  if (typeof value === 'string' && known.includes(value)) return value
  const nearest = typeof value === 'string' ? closest(value, known) : ''
  const isNear = nearest !== '' && distance(String(value), nearest) <= 4
  throw new Error(`${at}: ${JSON.stringify(value) ?? 'missing'} is unknown; ` +
    (isNear ? `did you mean ${nearest}?` : `known are ${known.join(', ')}`))
}

module.exports = { readRules }
