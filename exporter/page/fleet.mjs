import { h, setText } from './dom.mjs'
import { formatBytes, formatRatio } from './format.mjs'
import { deathsList } from './deaths.mjs'

/** @typedef {any} Row as the event `targets` of /api/v1/live has it */

const HEADS = ['Target', 'RSS', 'of its limit', 'Heap used', 'Loop busy', 'Verdict']
const SEVERITIES = ['critical', 'warning', 'info']
/** From the most to the least urgent: see engine/verdicts/headline.js. */
const STATES = ['confirmed', 'suspected', 'undecided', 'limited', 'ok']

/** All targets, worst first, and who died lately. */
export class Fleet {
  title = 'memwatch'
  #summary = h('p', { class: 'summary' })
  #body = h('tbody', {})
  #empty = h('p', {}, 'No target: start an app with ', h('code', {}, 'node -r memwatch/agent'), '.')
  #table
  #filter
  #deaths = h('section', { 'aria-label': 'Deaths' })
  /**
   * @type {Map<string, { element: HTMLTableRowElement, cells: HTMLElement[], meter:
   *   HTMLMeterElement }>}
   */
  #rows = new Map()
  /** @type {Row[]} */
  #targets = []

  constructor () {
    this.#filter = h('input', {
      type: 'search',
      placeholder: 'Filter by name or verdict',
      'aria-label': 'Filter targets by name or verdict',
      oninput: () => this.#render()
    })
    this.#table = h(
      'div',
      { class: 'scrolls', tabindex: 0, role: 'region', 'aria-label': 'Targets' },
      h(
        'table',
        {},
        h('thead', {}, h('tr', {}, ...HEADS.map(head => h('th', { scope: 'col' }, head)))),
        this.#body
      )
    )
    this.element = h(
      'div',
      {},
      h('h1', { class: 'unseen' }, 'Targets'),
      h('div', { class: 'bar' }, this.#summary, this.#filter),
      this.#empty,
      this.#table,
      this.#deaths
    )
    this.#table.hidden = true
    this.showDeaths()
  }

  /** @param {Row[]} targets */
  showTargets (targets) {
    this.#targets = targets
    this.#render()
  }

  async showDeaths () {
    const list = await deathsList({})
    this.#deaths.replaceChildren(...list ? [h('h2', {}, 'Who died lately'), list] : [])
  }

  #render () {
    const words = /** @type {HTMLInputElement} */ (this.#filter).value.trim().toLowerCase()
    const shown = this.#targets
      .filter(
        row =>
          words === '' ||
          `${row.target} ${row.thread} ${sentence(row)}`.toLowerCase().includes(words)
      )
      .sort(
        (a, b) =>
          rankOf(a) - rankOf(b) ||
          (b.rssBytes ?? 0) - (a.rssBytes ?? 0) ||
          (a.target < b.target ? -1 : 1)
      )
    const ill = this.#targets.filter(({ headline }) => headline.confirmed > 0).length
    const open = this.#targets.filter(({ headline }) => headline.state === 'undecided').length
    setText(this.#summary, [
      `${this.#targets.length} watched`,
      `${ill} with a confirmed problem`,
      ...open > 0 ? [`${open} undecided`] : [],
      ...shown.length < this.#targets.length ? [`${shown.length} shown`] : []
    ].join(', '))
    this.#empty.hidden = this.#targets.length > 0
    this.#table.hidden = this.#targets.length === 0
    const kept = new Set()
    const order = shown.map(row => {
      const key = `${row.target} ${row.thread} ${row.pid} ${row.startedAtUnixMs}`
      kept.add(key)
      let line = this.#rows.get(key)
      if (!line) this.#rows.set(key, line = lineOf(row))
      update(line, row)
      return line.element
    })
    for (const [key, { element }] of this.#rows) {
      if (kept.has(key)) continue
      element.remove()
      this.#rows.delete(key)
    }
    // Rows that stand where they should are not touched: a focused link keeps its focus.
    order.forEach((element, i) => {
      if (this.#body.children[i] !== element) {
        this.#body.insertBefore(element, this.#body.children[i] ?? null)
      }
    })
  }

  remove () {}
}

/** @param {Row} row */
function lineOf ({ target, thread, pid, node }) {
  const meter = h('meter', {
    min: 0,
    max: 1,
    high: 0.85,
    optimum: 0,
    'aria-label': `RSS of ${target} ${thread}, of its limit`
  })
  // On a phone each cell says what it is.
  const [rss, limit, heap, loop, verdict] = HEADS.slice(1).map((head, i) =>
    h('td', { class: i === 1 || i === 4 ? null : 'number', 'data-head': head })
  )
  const share = h('span', {})
  limit.append(meter, ' ', share)
  const element = h(
    'tr',
    {},
    h(
      'th',
      { scope: 'row' },
      h(
        'a',
        { href: `#${new URLSearchParams({ target, thread })}` },
        thread === 'main' ? target : `${target} ${thread}`
      ),
      h('small', {}, ` pid ${pid}, Node ${node}`)
    ),
    rss,
    limit,
    heap,
    loop,
    verdict
  )
  return { element, cells: [rss, share, heap, loop, verdict], meter }
}

/**
 * @param {ReturnType<typeof lineOf>} line
 * @param {Row} row
 */
function update ({ element, cells: [rss, share, heap, loop, verdict], meter }, row) {
  const { rssBytes, containerLimitBytes, heapUsedBytes, loopRatio } = row
  const ratio =
    rssBytes === undefined || containerLimitBytes === undefined
      ? undefined
      : rssBytes / containerLimitBytes
  setText(rss, rssBytes === undefined ? '' : formatBytes(rssBytes))
  meter.hidden = ratio === undefined
  if (ratio !== undefined) meter.value = ratio
  setText(share, ratio === undefined ? 'no limit' : formatRatio(ratio))
  setText(heap, heapUsedBytes === undefined ? '' : formatBytes(heapUsedBytes))
  setText(loop, loopRatio === undefined ? '' : formatRatio(loopRatio))
  element.className =
    !row.up && !row.silence ? 'gone' : row.headline.severity ? row.headline.state : ''
  setText(verdict, sentence(row))
}

/** @param {Row} row */
function sentence ({ headline, silence, up }) {
  if (silence) return `Silent (${silence}). ${headline.text}`
  return up ? headline.text : `Gone. ${headline.text}`
}

/**
 * Critical before warning, confirmed before suspected, and the silent before the undecided and
 * the healthy.
 * @param {Row} row
 */
function rankOf ({ headline: { state, severity }, silence }) {
  if (severity) return 2 * SEVERITIES.indexOf(severity) + (state === 'confirmed' ? 0 : 1)
  return silence ? 20 : 30 + STATES.indexOf(state)
}
