import { ask } from './exporter.mjs'
import { fill, h, setText, symbolOf } from './dom.mjs'
import { formatBytes, formatRatio } from '@memwatch/engine/text/format'
import { deathsList } from './deaths.mjs'
import { miniature } from './miniature.mjs'
import { Processes } from './processes.mjs'

/** @typedef {any} Row row in the event `targets` of /api/v1/live */
/** @typedef {{ name: string, rows: Row[] }} Workload rows of one workload, worst first */

const SEVERITIES = ['critical', 'warning', 'info']
/** States from the most to the least urgent: see engine/verdicts/headline.js. */
const STATES = ['confirmed', 'suspected', 'undecided', 'limited', 'ok']
/** Least waste that is printed. */
const LEAST_WASTE_BYTES = 2 ** 20
/** Length of the RSS history in a row. */
const COURSE_SECONDS = 600
const COURSE_STEP_SECONDS = 10
const MOST_POINTS = COURSE_SECONDS / COURSE_STEP_SECONDS
/** Upper bound of rows whose history is loaded: the rows that are visible at first. */
const MOST_COURSES = 50
const ASKED_AT_ONCE = 4

const limitRatio = (/** @type {Row} */ { rssBytes, containerLimitBytes }) =>
  rssBytes === undefined || containerLimitBytes === undefined
    ? undefined
    : rssBytes / containerLimitBytes

/**
 * Orders of the list, by the value of `sort` in the address. Equal rows are ordered by urgency.
 * @type {Record<string, { title: string, value: (row: Row) => number }>}
 */
const SORTS = {
  urgency: { title: 'Urgency', value: row => -rankOf(row) },
  rss: { title: 'RSS', value: ({ rssBytes }) => rssBytes ?? -1 },
  limit: { title: 'Share of limit', value: row => limitRatio(row) ?? -1 },
  gc: { title: 'GC', value: ({ gcRatio }) => gcRatio ?? -1 },
  waste: { title: 'Waste', value: ({ wasteBytes }) => wasteBytes }
}
/** Columns; those with a key sort the list. */
const HEADS = /** @type {const} */ ([
  ['Target', 'urgency'], ['RSS, 10 min', 'rss'], ['of limit', 'limit'], ['GC', 'gc'],
  ['Waste', 'waste'], ['Verdict', undefined]
])

/** View of all targets by workload, worst first, and of the last deaths. */
export class Fleet {
  title = 'memwatch'
  #summary = h('p', { class: 'summary' })
  #table
  #heads
  #empty = h('p', {}, 'No target: start an app with ', h('code', {}, 'node -r memwatch/agent'), '.')
  #region
  #filter
  #sort
  #processes = new Processes()
  #deaths = h('section', { 'aria-label': 'Deaths' })
  /** Reasons of ended targets, by name and pid. @type {Map<string, string>} */
  #reasons = new Map()
  /** @type {Map<string, TargetLine>} */
  #lines = new Map()
  /**
   * @type {Map<string, { body: HTMLElement, head: HTMLElement }>} groups by name of the workload
   */
  #groups = new Map()
  /** Targets whose history is to be loaded. @type {TargetLine[]} */
  #waiting = []
  #asking = 0
  #hasWaste = false
  #asked = 0
  /** @type {Row[]} */
  #targets = []

  /** @param {URLSearchParams} at filter and sort order in the URL */
  constructor (at) {
    const sort = at.get('sort') ?? ''
    this.#sort = Object.hasOwn(SORTS, sort) ? sort : 'urgency'
    this.#filter = h('input', {
      type: 'search',
      placeholder: 'Filter by name or verdict',
      'aria-label': 'Filter targets by name or verdict',
      value: at.get('filter') ?? '',
      oninput: () => this.#choose(this.#sort)
    })
    this.#heads = HEADS.map(([head, key]) => h('th', { scope: 'col' }, key
      ? h('button', {
        type: 'button',
        class: 'head',
        title: `Sort by ${SORTS[key].title}`,
        onclick: () => this.#choose(key)
      }, head)
      : head))
    this.#table = h('table', { class: 'fleet' }, h('thead', {}, h('tr', {}, ...this.#heads)))
    this.#region = h(
      'div',
      { class: 'scrolls', tabindex: 0, role: 'region', 'aria-label': 'Targets' },
      this.#table
    )
    this.element = h(
      'div',
      {},
      h('h1', { class: 'unseen' }, 'Targets'),
      h('div', { class: 'bar' }, this.#summary, this.#filter),
      this.#empty,
      this.#region,
      h(
        'p',
        { class: 'help keys' },
        ...[['j', ' next · '], ['k', ' previous · '], ['Enter', ' opens · '], ['/', ' filters']]
          .flatMap(([key, words]) => [h('kbd', {}, key), words])
      ),
      this.#processes.element,
      this.#deaths
    )
    this.#region.hidden = true
    this.showDeaths()
  }

  /** @param {Row[]} targets */
  showTargets (targets) {
    this.#targets = targets
    this.#render()
  }

  async showDeaths () {
    const deaths = await ask('deaths', { limit: 20 }).catch(() => [])
    this.#reasons = new Map(deaths.map((/** @type {any} */ { target, pid, reason }) =>
      [`${target} ${pid}`, reason.replaceAll('_', ' ')]))
    const list = deathsList(deaths)
    this.#deaths.replaceChildren(...list ? [h('h2', {}, 'Last deaths'), list] : [])
    this.#render()
  }

  /** @param {KeyboardEvent} event */
  press (event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const isTyping = event.target === this.#filter
    if (isTyping && event.key === 'Escape') this.#links()[0]?.focus()
    if (isTyping || event.target instanceof HTMLSelectElement) return
    const step = { j: 1, k: -1 }[event.key]
    if (step !== undefined) {
      const links = this.#links()
      const at = links.indexOf(/** @type {HTMLAnchorElement} */ (document.activeElement))
      links[Math.max(0, Math.min(links.length - 1, at < 0 ? 0 : at + step))]?.focus()
    } else if (event.key === '/') {
      event.preventDefault()
      this.#filter.focus()
    }
  }

  /** @returns {HTMLAnchorElement[]} rows of the targets */
  #links () {
    return [...this.#table.querySelectorAll('a')]
  }

  /** @param {string} sort a key of SORTS */
  #choose (sort) {
    this.#sort = sort
    const at = new URLSearchParams()
    if (this.#filter.value) at.set('filter', this.#filter.value)
    if (sort !== 'urgency') at.set('sort', sort)
    history.replaceState(null, '', at.size > 0 ? `#${at}` : location.pathname)
    this.#render()
  }

  #render () {
    const words = this.#filter.value.trim().toLowerCase()
    const shown = this.#targets.filter(row => {
      const { target, thread, pod } = row
      return `${target} ${thread} ${pod ?? ''} ${this.#sentence(row)}`.toLowerCase().includes(words)
    })
    // Most fleets have no waste: an empty column would look like missing values.
    this.#hasWaste = this.#targets.some(({ wasteBytes }) => wasteBytes >= LEAST_WASTE_BYTES)
    this.#heads.forEach((head, i) => {
      const key = HEADS[i][1]
      if (key === 'waste') head.hidden = !this.#hasWaste
      if (key) head.setAttribute('aria-sort', key === this.#sort ? 'descending' : 'none')
    })
    const ill = this.#targets.filter(({ headline }) => headline.confirmed > 0).length
    const open = this.#targets.filter(({ headline }) => headline.state === 'undecided').length
    setText(this.#summary, [
      `${this.#targets.length} watched`,
      `${ill} with a confirmed problem`,
      ...open > 0 ? [`${open} undecided`] : [],
      ...shown.length < this.#targets.length ? [`${shown.length} shown`] : []
    ].join(', '))
    this.#empty.hidden = this.#targets.length > 0
    this.#region.hidden = this.#targets.length === 0
    this.#forget()
    const workloads = this.#workloads(shown)
    place(this.#table, 1, workloads.map(workload => this.#showWorkload(workload)))
  }

  /**
   * @param {Row[]} rows
   * @returns {Workload[]} workloads, worst first
   */
  #workloads (rows) {
    const { value } = SORTS[this.#sort]
    const names = new Set(this.#targets.map(({ target }) => target))
    /** @type {Map<string, Row[]>} */
    const byName = new Map()
    const sorted = rows.toSorted((a, b) => value(b) - value(a) || rankOf(a) - rankOf(b) ||
      (b.rssBytes ?? 0) - (a.rssBytes ?? 0) || (a.target < b.target ? -1 : 1))
    for (const row of sorted) {
      const name = workloadOf(row.target, names)
      byName.set(name, [...byName.get(name) ?? [], row])
    }
    return [...byName].map(([name, rows]) => ({ name, rows }))
  }

  /**
   * @param {Workload} workload
   * @returns {HTMLElement} the workload's part of the table
   */
  #showWorkload ({ name, rows }) {
    let group = this.#groups.get(name)
    if (!group) {
      const head = h('tr', { class: 'workload' })
      this.#groups.set(name, group = { body: h('tbody', {}), head })
    }
    const { body, head } = group
    // The headline of a main thread may be about a worker, which has a row of its own.
    const diagnosis =
      rows.find(({ headline }) => headline.diagnosis !== null)?.headline.diagnosis ?? null
    const sharing = diagnosis === null
      ? 0
      : rows.filter(({ headline }) => headline.diagnosis === diagnosis).length
    const nodes = [...new Set(rows.map(({ node }) => node))].join(', ')
    fill(head, [name, rows.length, sharing, diagnosis, nodes], () => h(
      'th',
      { colspan: HEADS.length, scope: 'rowgroup' },
      h('b', {}, name),
      ` ${rows.length} targets, Node ${nodes}`,
      sharing > 0 ? `; ${sharing} with ${diagnosis}` : ''
    ))
    place(body, 0, [...rows.length > 1 ? [head] : [], ...rows.map(row => this.#showLine(row))])
    return body
  }

  /**
   * @param {Row} row
   * @returns {HTMLElement}
   */
  #showLine (row) {
    const key = keyOf(row)
    let line = this.#lines.get(key)
    if (!line) {
      this.#lines.set(key, line = new TargetLine(row))
      if (this.#asked++ < MOST_COURSES) this.#waiting.push(line)
      this.#askCourses()
    }
    line.show(row, this.#sentence(row), this.#hasWaste)
    return line.element
  }

  /** Removes the lines of targets that are no longer watched. Hidden rows keep their lines. */
  #forget () {
    const names = new Set(this.#targets.map(({ target }) => target))
    const lines = new Set(this.#targets.map(keyOf))
    const groups = new Set([...names].map(name => workloadOf(name, names)))
    for (const key of this.#lines.keys()) if (!lines.has(key)) this.#lines.delete(key)
    for (const name of this.#groups.keys()) if (!groups.has(name)) this.#groups.delete(name)
  }

  /** Loads the history of each row, a few at a time. */
  async #askCourses () {
    if (this.#asking >= ASKED_AT_ONCE) return
    this.#asking++
    for (let line; (line = this.#waiting.shift());) await line.askCourse()
    this.#asking--
  }

  /** @param {Row} row */
  #sentence ({ target, pid, headline, silence, up }) {
    if (silence) return `Silent (${silence.replaceAll('_', ' ')}). ${headline.text}`
    if (up) return headline.text
    const reason = this.#reasons.get(`${target} ${pid}`) ?? 'reason unknown'
    return `Gone (${reason}). ${headline.text}`
  }

  remove () {
    this.#waiting = []
    this.#processes.remove()
  }
}

/** One target: a row of the table, in which only changed values are updated. */
class TargetLine {
  #row
  #symbol = h('span', {})
  #course = h('span', { class: 'drawing' })
  #rss = h('span', {})
  #share = h('td', { class: 'number', 'data-head': 'of limit' })
  #gc = h('td', { class: 'number', 'data-head': 'GC' })
  #waste = h('td', { class: 'number', 'data-head': 'Waste' })
  #verdict = h('span', { class: 'short' })
  /** RSS over time, oldest first, and the time of the newest value. @type {(number | null)[]} */
  #values = []
  #heardUnixMs = 0

  /** @param {Row} row */
  constructor (row) {
    const { target, thread, pid, node, pod } = this.#row = row
    this.element = h('tr', {},
      h('th', { scope: 'row' }, this.#symbol, ' ',
        h('a', { href: `#${new URLSearchParams({ target, thread })}` },
          thread === 'main' ? target : `${target} ${thread}`),
        h('small', {}, ` ${pod ? `${pod}, ` : ''}pid ${pid}, Node ${node}`)),
      h('td', { 'data-head': 'RSS', class: 'rss' }, this.#course, ' ', this.#rss),
      this.#share, this.#gc, this.#waste, h('td', { 'data-head': 'Verdict' }, this.#verdict))
  }

  /**
   * @param {Row} row
   * @param {string} sentence
   * @param {boolean} hasWaste true to show the column of waste
   */
  show (row, sentence, hasWaste) {
    this.#row = row
    const { up, silence, headline, rssBytes, gcRatio, wasteBytes } = row
    const ratio = limitRatio(row)
    this.element.className = !up && !silence ? 'gone' : headline.severity ?? ''
    fill(this.#symbol, headline.state, () => symbolOf(headline.state))
    setText(this.#rss, rssBytes === undefined ? '' : formatBytes(rssBytes))
    setText(this.#share, ratio === undefined ? 'no limit' : formatRatio(ratio))
    setText(this.#gc, gcRatio === undefined ? '' : formatRatio(gcRatio))
    this.#waste.hidden = !hasWaste
    setText(this.#waste, wasteBytes >= LEAST_WASTE_BYTES ? formatBytes(wasteBytes) : '')
    setText(this.#verdict, sentence)
    if (!up || rssBytes === undefined) return
    const now = Date.now()
    if (now - this.#heardUnixMs < 1000 * COURSE_STEP_SECONDS) return
    this.#heardUnixMs = now
    this.#values = [...this.#values, rssBytes].slice(-MOST_POINTS)
    this.#draw()
  }

  /** Loads the minutes before the page was opened. */
  async askCourse () {
    const { target, thread } = this.#row
    const { tracks } = await ask(`targets/${encodeURIComponent(target)}/series`, {
      thread, seconds: COURSE_SECONDS, step: COURSE_STEP_SECONDS, track: 'rssBytes'
    }).catch(() => ({}))
    if (!tracks) return
    this.#values = [...tracks.rssBytes.last, ...this.#values].slice(-MOST_POINTS)
    this.#draw()
  }

  #draw () {
    const drawn = miniature(this.#values, {
      threshold: this.#row.containerLimitBytes, isToScale: true
    })
    this.#course.replaceChildren(...drawn ? [drawn] : [])
  }
}

/** @param {Row} row */
const keyOf = ({ target, thread, pid, startedAtUnixMs }) =>
  `${target} ${thread} ${pid} ${startedAtUnixMs}`

/**
 * Name of a target's workload. The exporter numbers targets of one workload: shop, shop-2, shop-3.
 * @param {string} name
 * @param {Set<string>} names of all targets
 */
function workloadOf (name, names) {
  const base = /^(.*)-\d+$/.exec(name)?.[1]
  return base !== undefined && names.has(base) ? base : name
}

/**
 * Puts elements in order. Elements that are already in place are not moved, so that a focused link
 * keeps its focus.
 * @param {HTMLElement} parent
 * @param {number} from index index of the first element
 * @param {HTMLElement[]} wanted
 */
function place (parent, from, wanted) {
  wanted.forEach((element, i) => {
    const standing = parent.children[from + i] ?? null
    if (standing !== element) parent.insertBefore(element, standing)
  })
  while (parent.children.length > from + wanted.length) parent.lastElementChild?.remove()
}

/**
 * Rank of a row: critical before warning, confirmed before suspected, silent before undecided and
 * healthy.
 * @param {Row} row
 */
function rankOf ({ headline: { state, severity }, silence }) {
  if (severity) return 2 * SEVERITIES.indexOf(severity) + (state === 'confirmed' ? 0 : 1)
  return silence ? 20 : 30 + STATES.indexOf(state)
}
