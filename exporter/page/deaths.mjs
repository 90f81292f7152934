import { ask, Refused } from './exporter.mjs'
import { h } from './dom.mjs'
import { History } from './history.mjs'
import { charts } from './charts.mjs'
import { ChartView } from './chart.mjs'
import { holdersOf, time } from './verdict.mjs'

/**
 * @param {any[]} deaths deaths in the form of /api/v1/deaths
 * @returns {HTMLElement | undefined} undefined without deaths
 */
export function deathsList (deaths) {
  if (deaths.length === 0) return undefined
  return h(
    'ul',
    { class: 'deaths' },
    ...deaths.map(({ id, target, thread, reason, sure, text, diedAtUnixMs }) =>
      h(
        'li',
        { class: reason === 'clean' ? '' : 'ill' },
        time(diedAtUnixMs),
        ' ',
        h(
          'a',
          { href: `#${new URLSearchParams({ death: id })}` },
          thread === 'main' ? target : `${target} ${thread}`
        ),
        ' ',
        h('strong', {}, reason.replaceAll('_', ' ')),
        ` (${sure}): ${text}`
      )
    )
  )
}

/** View of one death: its cause, the findings before, and the last minutes. */
export class Death {
  #id
  #views = charts.map(chart => ({ chart, view: new ChartView(chart) }))

  /** @param {string} id */
  constructor (id) {
    this.#id = id
    this.title = 'A death · memwatch'
    this.element = h('div', {}, h('p', {}, 'Asking …'))
    this.#show()
  }

  async #show () {
    try {
      const { death, lastMinutes } = await ask(`deaths/${encodeURIComponent(this.#id)}`)
      const {
        target,
        thread,
        pid,
        node,
        text,
        reason,
        sure,
        diedAtUnixMs,
        lastFrameUnixMs,
        suspects,
        holders,
        verdict
      } = death
      document.title = `${target}: ${reason} · memwatch`
      this.element.replaceChildren(
        h(
          'h1',
          {},
          `${target} ${thread === 'main' ? '' : thread}`,
          h('small', {}, ` pid ${pid}, Node ${node}`)
        ),
        h(
          'article',
          { class: `verdict ${reason === 'clean' ? '' : 'critical'}` },
          h(
            'p',
            { class: 'state' },
            '✕ ',
            h('strong', {}, reason.replaceAll('_', ' ')),
            ` ${sure} · noticed `,
            time(diedAtUnixMs)
          ),
          h('p', { class: 'sentence' }, text),
          suspects && h('p', {}, 'Suspects: ', h('code', {}, suspects)),
          ...(holders ? holdersOf(holders) : []),
          verdict &&
            h(
              'p',
              {},
              h('strong', {}, verdict.diagnosis),
              ` was confirmed before: ${verdict.summary}`
            ),
          verdict?.fix && h('pre', { tabindex: 0 }, verdict.fix)
        ),
        h('h2', {}, 'The minutes before'),
        h('div', { class: 'charts' }, ...this.#views.map(({ view }) => view.element))
      )
      const history = new History(1, Infinity)
      const tracks = Object.fromEntries(Object.entries(lastMinutes.tracks).map(([name, last]) => [name, { last: /** @type {(number | null)[]} */ (last) }]))
      history.append(lastMinutes.secondsBefore.map((/** @type {number} */ seconds) => lastFrameUnixMs / 1000 - seconds), tracks)
      for (const { view } of this.#views) view.show(history)
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      this.element.replaceChildren(h('p', { role: 'alert' }, error.message))
    }
  }

  redraw () {
    for (const { view } of this.#views) view.redraw()
  }

  resize () {
    for (const { view } of this.#views) view.resize()
  }

  remove () {
    for (const { view } of this.#views) view.remove()
  }
}
