'use strict'

const { formatBytes, formatRatio } = require('@memwatch/engine/text/format')
const { printable } = require('@memwatch/engine/text/printable')
const { stateSymbols } = require('@memwatch/engine/text/state-symbols')
const { renderTarget } = require('../watch/report')
const { sparkline } = require('../text/sparkline')

/** @typedef {import('../top').Row} Row */
/** @typedef {import('../text/terminal').Line} Line */

const SPARK_WIDTH = 24
/** Least width of the verdict: on a narrow terminal other columns are dropped for it. */
const LEAST_VERDICT = 40
/** Largest width of a target's text, because long lines are hard to read. */
const MOST_TEXT = 120
const CTRL_C = '\x03'
const ESCAPE = '\x1b'
/** Keys of terminals that send more than one character. */
const ARROWS = /** @type {Record<string, string>} */ ({ '\x1b[A': 'k', '\x1b[B': 'j' })
const ENTER = ['\r', '\n']
const DELETE = ['\x7f', '\b']

/**
 * @param {Row} row
 * @returns {number | undefined} RSS as a share of the limit
 */
const limitRatio = ({ values: { rssBytes, containerLimitBytes } }) =>
  rssBytes === undefined || containerLimitBytes === undefined
    ? undefined
    : rssBytes / containerLimitBytes

/**
 * @template T
 * @param {T | undefined} value
 * @param {(value: T) => string} format
 */
const known = (value, format) => value === undefined ? '' : format(value)

/**
 * Columns besides name and verdict. On a narrow terminal the columns of least worth are dropped
 * first.
 * @type {readonly { head: string, worth: number, text: (row: Row) => string }[]}
 */
const COLUMNS = [
  { head: 'RSS', worth: 4, text: ({ values }) => known(values.rssBytes, formatBytes) },
  { head: 'of limit', worth: 5, text: row => known(limitRatio(row), formatRatio) },
  { head: 'heap', worth: 1, text: ({ values }) => known(values.heapUsedBytes, formatBytes) },
  { head: 'GC', worth: 3, text: ({ gcRatio }) => known(gcRatio, formatRatio) },
  { head: 'loop', worth: 0, text: ({ loopRatio }) => known(loopRatio, formatRatio) },
  { head: 'RSS, 5 min', worth: 2, text: ({ rss }) => sparkline(rss, SPARK_WIDTH) }
]

/**
 * Sort orders of the list, through which the key s cycles. The rows arrive sorted by urgency.
 * @type {readonly { name: string, value: (row: Row) => number }[]}
 */
const SORTS = [
  { name: 'urgency', value: () => 0 },
  { name: 'RSS', value: ({ values }) => values.rssBytes ?? -1 },
  { name: 'share of limit', value: row => limitRatio(row) ?? -1 },
  { name: 'GC', value: ({ gcRatio }) => gcRatio ?? -1 }
]

const HELP = [
  'j k or ↓ ↑   select the next, the previous target',
  'Enter        open the selected target',
  'Esc          back to the list; clear the filter',
  '/            filter by name or verdict; Enter ends it',
  's            sort by the next of: urgency, RSS, share of limit, GC',
  '?            this help',
  'q, Ctrl-C    end',
  '',
  '! confirmed   ~ suspected   ? undecided   ✓ ruled out'
]

/** The screen of `memwatch top`: its state, its keys and its lines. */
class TopView {
  /** Rows of the list, worst first. @type {Row[]} */
  rows = []
  #origin
  /** @type {'list' | 'target' | 'help'} */
  #screen = 'list'
  #isFiltering = false
  #filter = ''
  #sort = 0
  /**
   * The selected target, which stays selected when others appear and disappear.
   * @type {string | undefined}
   */
  #selected

  /** @param {string} origin URL of the exporter */
  constructor (origin) {
    this.#origin = origin
  }

  /**
   * @param {string} input one key, or several that arrived together
   * @returns {boolean} false if a key ends the program
   */
  press (input) {
    const keys = ARROWS[input] ? [ARROWS[input]] : input.startsWith(ESCAPE) ? [ESCAPE] : [...input]
    return keys.every(key => this.#pressOne(key))
  }

  /** @param {string} key */
  #pressOne (key) {
    if (key === CTRL_C) return false
    if (this.#isFiltering) this.#type(key)
    else if (key === 'q') return false
    else if (key === ESCAPE) this.#goBack()
    else if (key === '?') this.#screen = this.#screen === 'help' ? 'list' : 'help'
    else if (this.#screen === 'list') this.#pressInList(key)
    return true
  }

  /** @param {string} key key that was pressed while the filter is typed */
  #type (key) {
    if (ENTER.includes(key)) this.#isFiltering = false
    else if (key === ESCAPE) {
      this.#isFiltering = false
      this.#filter = ''
    } else if (DELETE.includes(key)) this.#filter = this.#filter.slice(0, -1)
    else this.#filter += printable(key)
  }

  #goBack () {
    if (this.#screen === 'list') this.#filter = ''
    this.#screen = 'list'
  }

  /** @param {string} key */
  #pressInList (key) {
    const rows = this.#shown()
    const at = rows.findIndex(row => keyOf(row) === this.#selected)
    const select = (/** @type {number} */ i) => {
      const row = rows[Math.max(0, Math.min(rows.length - 1, i))]
      this.#selected = row && keyOf(row)
    }
    if (key === 'j') select(at + 1)
    else if (key === 'k') select(at - 1)
    else if (key === 's') this.#sort = (this.#sort + 1) % SORTS.length
    else if (key === '/') this.#isFiltering = true
    else if (ENTER.includes(key) && rows.length > 0) {
      select(at)
      this.#screen = 'target'
    }
  }

  /** @returns {Row[]} rows that match the filter, in the chosen order */
  #shown () {
    const words = this.#filter.toLowerCase()
    const { value } = SORTS[this.#sort]
    return this.rows
      .filter(row => `${row.name} ${describe(row)}`.toLowerCase().includes(words))
      .sort((a, b) => value(b) - value(a))
  }

  /**
   * @param {{ width: number, height: number }} size size of the terminal; Infinity without a
   *   terminal
   * @returns {Line[]}
   */
  render ({ width, height }) {
    const head = [...this.#header(width), '']
    if (this.#screen === 'help') return [...head, ...HELP]
    const row = this.rows.find(row => keyOf(row) === this.#selected)
    if (this.#screen === 'target') return [...head, ...this.#target(row, width)]
    return [...head, ...this.#list(width, height - head.length - 2)]
  }

  /** @param {number} width */
  #header (width) {
    const counts = ['confirmed', 'suspected', 'undecided'].flatMap(state => {
      const count = this.rows.filter(({ headline }) => headline?.state === state).length
      return count > 0 ? [`${count} ${state}`] : []
    })
    const gone = this.rows.filter(({ up, silence }) => !up && !silence).length
    const about = [
      `memwatch top · ${this.#origin}`,
      `${this.rows.length} ${this.rows.length === 1 ? 'target' : 'targets'}`,
      counts.join(', ') || 'no findings',
      ...gone > 0 ? [`${gone} gone`] : []
    ].join(' · ')
    const view = [
      ...this.#sort > 0 ? [`sorted by ${SORTS[this.#sort].name}`] : [],
      ...this.#filter || this.#isFiltering
        ? [`filter: ${this.#filter}${this.#isFiltering ? '_' : ''}`]
        : []
    ].join(' · ')
    const isScreen = width !== Infinity
    return [
      { text: cut(about, width), style: /** @type {const} */ ('bold') },
      ...isScreen || view ? [cut(view || '? lists the keys', width)] : []
    ]
  }

  /**
   * @param {Row | undefined} row
   * @param {number} width
   * @returns {Line[]}
   */
  #target (row, width) {
    if (!row?.judged) return ['The target is gone. Esc leads back to the list.']
    const dead = row.up || row.silence ? [] : [`Gone: ${row.death ?? 'reason unknown'}.`]
    return [...dead, ...renderTarget(row.judged, { width: Math.min(width, MOST_TEXT) })]
  }

  /**
   * @param {number} width
   * @param {number} height lines that rows may fill
   * @returns {Line[]}
   */
  #list (width, height) {
    if (this.rows.length === 0) return ['No target: start an app with node -r memwatch/agent.']
    const rows = this.#shown()
    const at = rows.findIndex(row => keyOf(row) === this.#selected)
    const from = Math.max(0, at - height + 1)
    const seen = rows.slice(from, height === Infinity ? undefined : from + Math.max(1, height))
    const names = seen.map(({ name, headline }) =>
      `${stateSymbols[headline?.state ?? 'undecided']} ${printable(name)}`)
    const table = [
      { head: 'target', worth: Infinity, cells: names },
      ...COLUMNS.map(({ head, worth, text }) => ({ head, worth, cells: seen.map(text) }))
    ].map(column => ({
      ...column,
      wide: Math.max(column.head.length, ...column.cells.map(cell => cell.length))
    }))
    const columns = dropNarrow(table, width)
    const line = (/** @type {(column: typeof table[number]) => string} */ read) => columns
      .map((column, i) => i === 0
        ? read(column).padEnd(column.wide)
        : read(column).padStart(column.wide))
      .join('  ')
    return [
      cut(`${line(({ head }) => head)}  verdict`, width),
      ...seen.map((row, i) => {
        const text = cut(`${line(({ cells }) => cells[i])}  ${printable(describe(row))}`, width)
        return styled(text, row, keyOf(row) === this.#selected)
      })
    ]
  }
}

/**
 * @template {{ worth: number, wide: number }} Column
 * @param {Column[]} columns
 * @param {number} width
 * @returns {Column[]} columns that leave room for a verdict
 */
function dropNarrow (columns, width) {
  const used = columns.reduce((sum, { wide }) => sum + wide + 2, 0)
  if (columns.length === 1 || used + LEAST_VERDICT <= width) return columns
  const least = Math.min(...columns.map(({ worth }) => worth))
  return dropNarrow(columns.filter(({ worth }) => worth > least), width)
}

/** @param {Row} row */
const keyOf = ({ target: { target, thread, pid } }) => `${target} ${thread} ${pid}`

/**
 * Cuts a text after a whole word, unless this would waste more than half of the width.
 * @param {string} text
 * @param {number} width
 */
function cut (text, width) {
  if (text.length <= width) return text
  const wordEnd = text.lastIndexOf(' ', width - 1)
  return `${text.slice(0, wordEnd > width / 2 ? wordEnd : width - 1).trimEnd()}…`
}

/** @param {Row} row */
function describe ({ headline, up, silence, death }) {
  const text = headline?.text ?? ''
  if (silence) return `Silent (${silence.replaceAll('_', ' ')}). ${text}`
  return up ? text : `Gone (${death ?? 'reason unknown'}). ${text}`
}

/**
 * Styles a row: the selected row is inverse, and rows of ended targets are dim, whatever was found
 * on them.
 * @param {string} text
 * @param {Row} row
 * @param {boolean} isSelected
 * @returns {Line}
 */
function styled (text, { headline, up, silence }, isSelected) {
  if (isSelected) return { text, style: 'inverse' }
  if (!up && !silence) return { text, style: 'dim' }
  if (headline?.severity == null) return text
  return { text, style: headline.state === 'confirmed' ? 'red' : 'yellow' }
}

module.exports = { TopView }
