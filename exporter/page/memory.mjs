import { partGroups } from './charts.mjs'
import { fill, h, setText } from './dom.mjs'
import { formatBytes, formatRatio, formatValue } from '@memwatch/engine/text/format'
import { partsOfTracks } from '@memwatch/engine/memory/track-parts'

/** Least share of a part that gets a segment. */
const LEAST_SHARE = 0.004
/** Share of the bar from which the label of a part fits into its segment. */
const WORDS_SHARE = 0.17
/** Least rise of a growing part within the time shown, as a share of RSS. */
const GROWN_SHARE = 0.03
/** Number of sections of the time shown; in a growing part each must be above the previous one. */
const STRETCHES = 5

/** @typedef {{ part: string, title: string, help: string, bytes: number }} Part */
/**
 * @typedef {{ id: string, title: string, colour: string, bytes: number, rate: number | null }}
 *   Group rate: growth in bytes per second; null without growth
 */
/**
 * @typedef {object} Memory memory in the form of /api/v1/targets
 * @property {number} rssBytes
 * @property {Part[]} parts
 * @property {number} retainedLeastBytes
 * @property {number} retainedMostBytes
 * @property {string | null} unknown
 */

/**
 * The RSS breakdown as one bar, whose length is the limit of the container. A click on a part shows
 * only the charts of this part.
 */
export class MemoryBar {
  element = h('section', { 'aria-label': 'RSS by part', class: 'memory' })
  #onChoose
  /** @type {string | undefined} id of the chosen part group */
  #chosen
  #heading = h('h2', {})
  #bar = h('div', { class: 'segments', 'aria-hidden': 'true' })
  #free = h('span', { class: 'free' })
  #ticks = h('div', { class: 'ticks' })
  #labels = h('ul', { class: 'labels' })
  #table = h('tbody', {})
  #unknown = h('p', { class: 'help' })
  #all

  /** @param {(id: string | undefined) => void} onChoose called with a part group, or without one */
  constructor (onChoose) {
    this.#onChoose = onChoose
    const showAll = () => this.#choose(undefined)
    this.#all = h('button', { type: 'button', onclick: showAll }, 'Show all charts')
    this.#all.hidden = true
    this.element.append(
      this.#heading,
      h('div', { class: 'stack' }, this.#bar, this.#free, this.#ticks),
      this.#labels,
      this.#all,
      h('details', {},
        h('summary', {}, 'All parts'),
        h('table', { class: 'parts' }, this.#table),
        this.#unknown)
    )
    this.element.hidden = true
  }

  /**
   * @param {Memory | null} memory null for a worker
   * @param {Record<string, any>} values newest value of every field
   * @param {import('./history.mjs').History} history
   */
  show (memory, values, history) {
    this.element.hidden = !memory
    if (!memory) return
    const { containerLimitBytes: limit, heapSizeLimitBytes: heapLimit } = values
    const groups = partGroups
      .map(({ id, title, colour, parts, tracks }) => ({
        id,
        title,
        colour,
        bytes: memory.parts
          .filter(({ part }) => parts.includes(part))
          .reduce((sum, { bytes }) => sum + bytes, 0),
        rate: growthOf(history, tracks, memory.rssBytes)
      }))
      .filter(({ bytes }) => bytes >= LEAST_SHARE * memory.rssBytes)
    const most = Math.max(memory.rssBytes, limit ?? 0)
    // Existing buttons are reused, so that a focused one keeps its focus.
    fill(this.#bar, groups.map(({ id }) => id), () => groups.map(group => this.#segment(group)))
    fill(this.#labels, groups.map(({ id }) => id), () =>
      groups.map(group => h('li', {}, this.#button(
        group, 'part', h('span', { class: `swatch ${group.colour}` }), h('span', {})))))
    groups.forEach((group, i) => {
      const words = wordsOf(group)
      const segment = /** @type {HTMLElement} */ (this.#bar.children[i])
      segment.style.width = percentOf(group.bytes, most)
      segment.title = `${words}: show its charts`
      setText(segment.children[0], group.bytes >= WORDS_SHARE * most ? words : '')
      const button = /** @type {Element} */ (this.#labels.children[i].firstElementChild)
      setText(button.children[1], words)
    })
    this.#free.style.left = percentOf(memory.rssBytes, most)
    const free = most - memory.rssBytes
    setText(this.#free, free >= WORDS_SHARE * most ? `${formatBytes(free)} free` : '')
    fill(this.#ticks, [limit, heapLimit, most], () => [
      ...limit === undefined ? [] : [tickOf('container limit', limit, most)],
      ...heapLimit !== undefined && heapLimit <= most ? [tickOf('heap limit', heapLimit, most)] : []
    ])
    const { rssBytes, parts, unknown } = memory
    const of = limit === undefined
      ? ', no limit'
      : ` of ${formatBytes(limit)}, ${formatRatio(rssBytes / limit)}`
    setText(this.#heading, `RSS by part: ${formatBytes(rssBytes)}${of}`)
    fill(this.#table, parts, () => parts
      .filter(({ bytes }) => bytes >= 0.001 * rssBytes)
      .map(({ title, help, bytes }) => h('tr', {},
        h('th', { scope: 'row' }, title, h('small', {}, help)),
        h('td', { class: 'number' }, formatBytes(bytes)),
        h('td', { class: 'number' }, formatRatio(bytes / rssBytes)))))
    setText(this.#unknown, unknown ? `Not known: ${unknown}.` : '')
  }

  /** @param {Group} group */
  #segment (group) {
    const segment = this.#button(group, `segment ${group.colour}`, h('span', { class: 'words' }))
    segment.tabIndex = -1 // The list below has the same buttons, so these need no tab stop.
    return segment
  }

  /**
   * @param {Group} group
   * @param {string} name class of the button
   * @param {...(Node | string)} content
   */
  #button (group, name, ...content) {
    return h('button', {
      type: 'button',
      class: name,
      'data-group': group.id,
      'aria-pressed': String(this.#chosen === group.id),
      onclick: () => this.#choose(this.#chosen === group.id ? undefined : group.id)
    }, ...content)
  }

  /** @param {string | undefined} id */
  #choose (id) {
    this.#chosen = id
    this.#all.hidden = id === undefined
    for (const button of this.element.querySelectorAll('button[data-group]')) {
      button.setAttribute('aria-pressed', String(button.getAttribute('data-group') === id))
    }
    this.#onChoose(id)
  }
}

/**
 * @param {number} bytes
 * @param {number} most
 */
const percentOf = (bytes, most) => `${(100 * bytes / most).toFixed(2)}%`

/**
 * @param {string} name
 * @param {number} bytes
 * @param {number} most bytes at the full width of the bar
 */
function tickOf (name, bytes, most) {
  const side = bytes > 0.5 * most ? 'ends' : 'starts'
  const tick = h('span', { class: `tick ${side}` }, `${name} ${formatBytes(bytes)}`)
  tick.style.left = percentOf(bytes, most)
  return tick
}

/** @param {{ title: string, bytes: number, rate: number | null }} group */
const wordsOf = ({ title, bytes, rate }) =>
  `${title} ${formatBytes(bytes)}` +
  (rate === null ? '' : ` ↑ ${formatValue(rate, 'bytesPerSecond')}`)

/**
 * Growth of a part whose minimum rose from section to section. Minima are compared, because garbage
 * and Buffers come and go without growth.
 * @param {import('./history.mjs').History} history
 * @param {import('./charts.mjs').PartGroup['tracks']} tracks tracks whose sum is the part
 * @param {number} rssBytes
 * @returns {number | null} bytes per second; null without growth
 */
function growthOf (history, tracks, rssBytes) {
  if (tracks.length === 0) return null
  const sizes = history.map(row => {
    const parts = partsOfTracks(row.last)
    return parts && tracks.reduce((sum, name) => sum + parts[name], 0)
  }).flatMap(bytes => bytes ?? [])
  if (sizes.length < 4 * STRETCHES) return null
  const each = sizes.length / STRETCHES
  const floors = Array.from({ length: STRETCHES }, (_, i) =>
    Math.min(...sizes.slice(Math.floor(i * each), Math.floor((i + 1) * each))))
  const rose = floors[STRETCHES - 1] - floors[0]
  const isGrowing = rose > GROWN_SHARE * rssBytes &&
    floors.every((floor, i) => i === 0 || floor > floors[i - 1])
  const seconds = Number(history.lastTime) - history.times[0]
  return isGrowing ? rose / (seconds * (STRETCHES - 1) / STRETCHES) : null
}
