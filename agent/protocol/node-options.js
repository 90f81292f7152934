'use strict'

const { MAX_TEXT, fitting } = require('./limits')
const { plainText } = require('./text-rules')

/**
 * NODE_OPTIONS split as Node splits it: at spaces, with double quotes and backslashes
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

/** Stands for the value of an option that is code or a title: neither leaves the process. */
const HIDDEN = '<hidden>'
/** Options whose value is hidden, whatever it is. Node.js also reads `_` for `-` in a name. */
const CODE_OPTIONS = ['--eval', '--print']
const HIDDEN_OPTIONS = [...CODE_OPTIONS, '--title']
/** A module that is its own source, as in `--import data:text/javascript,...`. */
const DATA_URL = /^data:/i
/**
 * @param {string} flag
 * @returns {string} its name as Node.js documents it
 */
const nameOf = flag => flag.split('=', 1)[0].replaceAll('_', '-')

/**
 * @param {string} flag
 * @returns {boolean} whether it brings the source of the app with it
 */
const isCodeFlag = flag => /^-[a-zA-Z]*[ep]$/.test(flag) || CODE_OPTIONS.includes(nameOf(flag))

/** URLs are read without spaces and control characters. @param {string} value */
// eslint-disable-next-line no-control-regex
const isDataUrl = value => DATA_URL.test(value.replace(/[\x00-\x20]/g, ''))

/**
 * Flags as they were given, one for one, up to what the wire takes. Code and titles are hidden.
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
    const hides = HIDDEN_OPTIONS.includes(nameOf(flag))
    const equals = flag.indexOf('=')
    hidesNext = equals < 0 && (hides || isCodeFlag(flag))
    return equals >= 0 && (hides || isDataUrl(flag.slice(equals + 1)))
      ? plainText(`${flag.slice(0, equals)}=${HIDDEN}`, MAX_TEXT)
      : plainText(flag, MAX_TEXT)
  }))
}

module.exports = { splitNodeOptions, plainFlags, isCodeFlag }
