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
 * all texts, so that none can control the terminal.
 */
class Output {
  #streamOf
  /** A line that the next one replaces. */
  #isDrawn = false

  /** @param {() => NodeJS.WriteStream} streamOf opened when it is first written to */
  constructor (streamOf) {
    this.#streamOf = streamOf
  }

  /** For a protocol that owns the whole stream. A reader that has gone is no error. */
  get stream () {
    return this.#streamOf()
  }

  get isTerminal () {
    return Boolean(this.#streamOf().isTTY)
  }

  /** Undefined where it is no terminal. */
  get columns () {
    return /** @type {number | undefined} */ (this.#streamOf().columns)
  }

  /** Undefined where it is no terminal. */
  get rows () {
    return /** @type {number | undefined} */ (this.#streamOf().rows)
  }

  /** @param {...import('../text/terminal').Line} lines that stay */
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

  /** Erases that line. */
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
   * @param {readonly import('../text/terminal').Line[]} lines as many as fit are shown
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
 * @returns {() => NodeJS.WriteStream} opens it when it is first written to
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
