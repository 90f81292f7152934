import { ask, Refused } from './exporter.mjs'
import { fill, h, setText } from './dom.mjs'
import { History } from './history.mjs'
import { charts, drawnTracks } from './charts.mjs'
import { ChartView } from './chart.mjs'
import { marksOf } from './marks.mjs'
import { VerdictCard } from './verdict.mjs'
import { Captures } from './captures.mjs'
import { deathsList } from './deaths.mjs'
import { formatBytes, formatRatio, formatSeconds } from './format.mjs'

/** Time ranges, the step of each, and how often new rows are asked for. */
const RANGES = [
  { name: '10 min', seconds: 600, stepSeconds: 1, everyMs: 2000 },
  { name: '1 h', seconds: 3600, stepSeconds: 10, everyMs: 10_000 },
  { name: '6 h', seconds: 6 * 3600, stepSeconds: 10, everyMs: 10_000 },
  { name: '24 h', seconds: 86_400, stepSeconds: 60, everyMs: 60_000 },
  { name: '7 days', seconds: 7 * 86_400, stepSeconds: 600, everyMs: 60_000 }
]
const JUDGED_EVERY_MS = 2000

const chartOf = (/** @type {string} */ signal) => charts.find(({ evidence }) => Object.hasOwn(evidence, signal))?.id

/** One target: what is the matter, how to mend it, and the charts that show it. */
export class Target {
  #target
  #thread
  #range = RANGES[0]
  #history = new History(1, 600)
  #heading = h('h1', {})
  #facts = h('p', { class: 'facts' })
  #problem = h('p', { role: 'alert' })
  #verdicts = h('section', { 'aria-label': 'Verdicts' })
  #headline = h('p', { class: 'summary' }, 'Asking what was found …')
  #others = h('div', {})
  #memory = h('section', { 'aria-label': 'Memory' })
  #deaths = h('section', { 'aria-label': 'Deaths' })
  #captures
  /** @type {Map<string, VerdictCard>} */
  #cards = new Map()
  #views = charts.map(chart => ({ chart, view: new ChartView(chart) }))
  /** @type {Record<string, any>} the newest of every field */
  #values = {}
  /** @type {any[]} */
  #judged = []
  #startedAtUnixMs = 0
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #judging
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #extending
  #over = false

  /** @param {{ target: string, thread: string }} of */
  constructor ({ target, thread }) {
    this.#target = target
    this.#thread = thread
    this.title = `${target} · memwatch`
    const name = thread === 'main' ? target : `${target} ${thread}`
    this.#heading.textContent = name
    this.#captures = new Captures({ target, thread })
    this.#verdicts.append(this.#headline)
    const ranges = h(
      'fieldset',
      { class: 'ranges' },
      h('legend', { class: 'unseen' }, 'Time range'),
      ...RANGES.map((range, i) =>
        h(
          'label',
          {},
          h('input', {
            type: 'radio',
            name: 'range',
            value: range.seconds,
            checked: i === 0,
            onchange: () => this.#choose(range)
          }),
          range.name
        )
      )
    )
    this.element = h(
      'div',
      {},
      h('p', {}, h('a', { href: '#' }, 'All targets')),
      this.#heading,
      this.#facts,
      this.#problem,
      this.#verdicts,
      h('div', { class: 'bar' }, h('h2', {}, 'Charts'), ranges),
      h('div', { class: 'charts' }, ...this.#views.map(({ view }) => view.element)),
      this.#memory,
      this.#captures.element,
      this.#others,
      this.#deaths
    )
    this.#start()
  }

  async #start () {
    await this.refresh()
    this.showDeaths()
    if (this.#over) return
    this.#judging = setInterval(() => this.refresh(), JUDGED_EVERY_MS)
    await this.#choose(this.#range)
  }

  /**
   * @param {string} target
   * @param {string} thread
   */
  shows (target, thread) {
    return this.#target === target && this.#thread === thread
  }

  /** Verdicts and newest values. */
  async refresh () {
    const query = { target: this.#target, thread: this.#thread }
    let problem = 'No such target is watched now.'
    const [[target], [judged]] = await Promise.all([
      ask('targets', query),
      ask('diagnoses', query)
    ]).catch(error => {
      problem = error instanceof Refused ? error.message : 'The exporter does not answer.'
      return [[], []]
    })
    if (this.#over) return
    if (!target || !judged) return setText(this.#problem, problem)
    setText(
      this.#problem,
      target.silence
        ? `It is silent: ${target.silence.replaceAll('_', ' ')}.`
        : target.up
          ? ''
          : 'It is gone.'
    )
    this.#values = target.values
    this.#startedAtUnixMs = target.lastFrameUnixMs - 1000 * target.uptimeSeconds
    setText(
      this.#facts,
      `pid ${target.pid} · Node ${target.node} · V8 ${target.v8} · ${target.libc}, ` +
        `${target.allocator} · up ${formatSeconds(target.uptimeSeconds)}`
    )
    this.#judged = judged.verdicts
    this.#showVerdicts(judged)
    this.#showMemory(target.memory)
    this.#mark()
  }

  /** @param {any} judged */
  #showVerdicts ({ headline, verdicts }) {
    const found = verdicts.filter((/** @type {any} */ { state }) => state === 'confirmed' || state === 'suspected')
      .sort((/** @type {any} */ a, /** @type {any} */ b) => rankOf(a, headline) - rankOf(b, headline))
    this.#headline.className = `summary headline ${headline.state}`
    setText(this.#headline, headline.text)
    for (const [diagnosis, { element }] of this.#cards) {
      if (found.some((/** @type {any} */ verdict) => verdict.diagnosis === diagnosis)) continue
      element.remove()
      this.#cards.delete(diagnosis)
    }
    found.forEach((/** @type {any} */ verdict, /** @type {number} */ i) => {
      let card = this.#cards.get(verdict.diagnosis)
      if (!card) {
        this.#cards.set(verdict.diagnosis, (card = new VerdictCard(verdict.diagnosis, chartOf)))
      }
      card.show(verdict, this.#startedAtUnixMs)
      if (this.#verdicts.children[i + 1] !== card.element) {
        this.#verdicts.insertBefore(card.element, this.#verdicts.children[i + 1] ?? null)
      }
    })
    const rest = verdicts.filter((/** @type {any} */ verdict) => !found.includes(verdict)).map((/** @type {any} */ { diagnosis, state, summary }) => ({ diagnosis, state, summary }))
    if (!this.#others.firstChild) {
      this.#others.append(h('h2', {}, 'What else was looked for'), h('ul', {}))
    }
    fill(/** @type {Element} */ (this.#others.lastElementChild), rest, () => rest.map((/** @type {any} */ { diagnosis, state, summary }) => h('li', {}, h('b', {}, diagnosis), ` ${state === 'ok' ? 'ruled out' : 'not known'}: ${summary}`)))
  }

  /** @param {any} memory */
  #showMemory (memory) {
    fill(
      this.#memory,
      memory,
      () =>
        memory && [
          h('h2', {}, `Where the ${formatBytes(memory.rssBytes)} of RSS are`),
          h(
            'table',
            { class: 'parts' },
            h(
              'tbody',
              {},
              ...memory.parts
                .filter((/** @type {any} */ { bytes }) => bytes >= 0.001 * memory.rssBytes)
                .map((/** @type {any} */ { title, help, bytes }) =>
                  h(
                    'tr',
                    { title: help },
                    h('th', { scope: 'row' }, title),
                    h('td', { class: 'number' }, formatBytes(bytes)),
                    h('td', { class: 'number' }, formatRatio(bytes / memory.rssBytes)),
                    h(
                      'td',
                      {},
                      h('meter', {
                        min: 0,
                        max: 1,
                        value: bytes / memory.rssBytes,
                        'aria-label': title
                      })
                    )
                  )
                )
            )
          ),
          memory.unknown && h('p', {}, `Not known: ${memory.unknown}.`)
        ]
    )
  }

  async showDeaths () {
    const list = await deathsList({ target: this.#target })
    this.#deaths.replaceChildren(...list ? [h('h2', {}, 'Deaths under this name'), list] : [])
  }

  showCaptures () {
    this.#captures.refresh()
  }

  /** @param {typeof RANGES[number]} range */
  async #choose (range) {
    this.#range = range
    this.#history = new History(range.stepSeconds, range.seconds)
    clearInterval(this.#extending)
    this.#extending = setInterval(() => this.#extend(range), range.everyMs)
    await this.#extend(range)
  }

  /** @param {typeof RANGES[number]} range */
  async #extend (range) {
    const history = this.#history
    const newest = history.lastTime
    // A little more than is missing: what is known already is left out.
    const seconds =
      newest === undefined
        ? range.seconds
        : Math.min(range.seconds, Math.ceil(Date.now() / 1000 - newest) + 2 * range.stepSeconds + 5)
    const { times, tracks, startedAtUnixMs } = await ask(
      `targets/${encodeURIComponent(this.#target)}/series`,
      { thread: this.#thread, seconds, step: range.stepSeconds, track: drawnTracks }
    ).catch(() => ({ times: [] }))
    if (times.length === 0 || history !== this.#history || this.#over) return
    history.append(times.map((/** @type {number} */ time) => startedAtUnixMs / 1000 + time), tracks)
    this.#mark()
    for (const { view } of this.#views) {
      await new Promise(resolve => setTimeout(resolve)) // a click in between is answered
      if (history !== this.#history || this.#over) return
      view.show(history)
    }
  }

  #mark () {
    const shown = {
      history: this.#history,
      values: this.#values,
      verdicts: this.#judged,
      startedAtUnixMs: this.#startedAtUnixMs
    }
    for (const { chart, view } of this.#views) {
      const { marks, evidence } = marksOf(chart, shown)
      view.mark(marks, evidence)
    }
  }

  redraw () {
    for (const { view } of this.#views) view.redraw()
  }

  resize () {
    for (const { view } of this.#views) view.resize()
  }

  remove () {
    this.#over = true
    clearInterval(this.#judging)
    clearInterval(this.#extending)
    for (const { view } of this.#views) view.remove()
    this.#captures.remove()
  }
}

/**
 * The finding of the headline first, confirmed before suspected, opportunities last.
 * @param {any} verdict
 * @param {any} headline
 */
function rankOf ({ diagnosis, state, opportunity }, headline) {
  if (diagnosis === headline.diagnosis) return 0
  if (opportunity) return 3
  return state === 'confirmed' ? 1 : 2
}
