'use strict'

const { printable } = require('@memwatch/engine/text/printable')
const { terminalText } = require('../text/terminal')
const { toJson } = require('@memwatch/engine/text/json')

const CLEAR_LINE = '\r\x1b[2K'
const HOME_AND_CLEAR = '\x1b[H\x1b[J'
const ALTERNATE_SCREEN = { on: '\x1b[?1049h\x1b[?25l', off: '\x1b[?25h\x1b[?1049l' }
/** Width of an output that does not report its own. */
const COLUMNS = 100

/**
 * A stream that commands write to: the only way to stdout and stderr (eslint.config.js). It escapes
 * all texts, so that no text can control the terminal.
 */
class Output {
  #streamOf
  /** True if the last line is replaced by the next one. */
  #isDrawn = false

  /** @param {() => NodeJS.WriteStream} streamOf returns the stream; called at the first write */
  constructor (streamOf) {
    this.#streamOf = streamOf
  }

  /** The stream itself, for a protocol that uses all of it. A closed pipe is not an error. */
  get stream () {
    return this.#streamOf()
  }

  get isTerminal () {
    return Boolean(this.#streamOf().isTTY)
  }

  /** Width of the terminal; undefined if the stream is not a terminal. */
  get columns () {
    return /** @type {number | undefined} */ (this.#streamOf().columns)
  }

  /** Height of the terminal; undefined if the stream is not a terminal. */
  get rows () {
    return /** @type {number | undefined} */ (this.#streamOf().rows)
  }

  /** @param {...import('../text/terminal').Line} lines permanent lines */
  say (...lines) {
    this.clear()
    this.#write(terminalText(lines, { colour: this.#hasColour }))
  }

  /** @param {string} text of several lines with intended breaks, written by memwatch itself */
  text (text) {
    this.say(...text.replace(/\n$/, '').split('\n'))
  }

  /**
   * @param {unknown} value
   * @param {number} [indent]
   */
  json (value, indent) {
    this.#write(`${toJson(value, indent)}\n`)
  }

  /** Prints a line that the next one replaces, on a terminal only. @param {string} text */
  redraw (text) {
    if (!this.isTerminal) return
    this.#write(`${CLEAR_LINE}${printable(text).slice(0, (this.columns || COLUMNS) - 1)}`)
    this.#isDrawn = true
  }

  /** Erases a line printed by redraw. */
  clear () {
    if (this.#isDrawn) this.#write(CLEAR_LINE)
    this.#isDrawn = false
  }

  /** @param {boolean} isOn switches to the terminal's alternate screen, without a cursor */
  screen (isOn) {
    this.#write(isOn ? ALTERNATE_SCREEN.on : ALTERNATE_SCREEN.off)
  }

  /**
   * Draws the whole screen.
   * @param {readonly import('../text/terminal').Line[]} lines lines; only as many as fit are
   *   shown
   */
  redrawScreen (lines) {
    this.#write(
      HOME_AND_CLEAR +
        terminalText(lines.slice(0, this.#streamOf().rows - 1), {
          colour: this.#hasColour
        }).trimEnd()
    )
  }

  get #hasColour () {
    return this.isTerminal && !process.env.NO_COLOR
  }

  /** @param {string} text escaped */
  #write (text) {
    this.#streamOf().write(text)
  }
}

/**
 * Ignores a closed pipe: the reader may have read enough, as in `memwatch top | head`.
 * @param {NodeJS.ErrnoException} error
 */
function ignoreClosedPipe (error) {
  if (error.code !== 'EPIPE') throw error
}

/**
 * @param {'stdout' | 'stderr'} name
 * @returns {() => NodeJS.WriteStream} function that opens the stream at its first call
 */
function openStream (name) {
  /** @type {NodeJS.WriteStream | undefined} */
  let stream
  return () => {
    stream ??= process[name].on('error', ignoreClosedPipe)
    return stream
  }
}

const out = new Output(openStream('stdout'))
const err = new Output(openStream('stderr'))

module.exports = { Output, out, err }
