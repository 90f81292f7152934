'use strict'

const { MAX_TEXT, fitting } = require('./limits')
const { plainText } = require('./text-rules')

/**
 * Splits NODE_OPTIONS like Node: at spaces, with double quotes and backslashes
 * (src/node_options.cc).
 * @param {string} text
 */
function splitNodeOptions (text) {
  /** @type {string[]} */
  const options = []
  let current = ''
  let quoted = false
  let started = false
  for (let i = 0; i < text.length; i++) {
    const character = text[i]
    if (character === '\\' && quoted && i + 1 < text.length) current += text[++i]
    else if (character === '"') {
      quoted = !quoted
      started = true
    } else if (character === ' ' && !quoted) {
      if (started || current) options.push(current)
      current = ''
      started = false
    } else current += character
  }
  if (started || current) options.push(current)
  return options
}

/** Replaces code and titles, which never leave the process. */
const HIDDEN = '<hidden>'
/** Options with a hidden value. Node.js also reads `_` for `-` in a name. */
const CODE_OPTIONS = ['--eval', '--print']
const HIDDEN_OPTIONS = [...CODE_OPTIONS, '--title']
/** A module given as its own source, as in `--import data:text/javascript,...`. */
const DATA_URL = /^data:/i
/**
 * @param {string} flag
 * @returns {string} name as Node.js documents it
 */
const plainName = flag => flag.split('=', 1)[0].replaceAll('_', '-')

/**
 * @param {string} flag
 * @returns {boolean} true: its value is the source of the app
 */
const isCodeFlag = flag => /^-[a-zA-Z]*[ep]$/.test(flag) || CODE_OPTIONS.includes(plainName(flag))

/** Readers of URLs ignore spaces and control characters. @param {string} value */
// eslint-disable-next-line no-control-regex
const isDataUrl = value => DATA_URL.test(value.replace(/[\x00-\x20]/g, ''))

/**
 * Each flag in its place, within the limits of the wire, with code and titles hidden.
 * @param {string[]} flags
 * @returns {string[]}
 */
function plainFlags (flags) {
  let hidesNext = false
  return fitting(flags.map(flag => {
    const isValue = !flag.startsWith('-')
    if (isValue) {
      const hides = hidesNext || isDataUrl(flag)
      hidesNext = false
      return hides ? HIDDEN : plainText(flag, MAX_TEXT)
    }
    const hides = HIDDEN_OPTIONS.includes(plainName(flag))
    const equals = flag.indexOf('=')
    hidesNext = equals < 0 && (hides || isCodeFlag(flag))
    return equals >= 0 && (hides || isDataUrl(flag.slice(equals + 1)))
      ? plainText(`${flag.slice(0, equals)}=${HIDDEN}`, MAX_TEXT)
      : plainText(flag, MAX_TEXT)
  }))
}

module.exports = { splitNodeOptions, plainFlags, isCodeFlag }
