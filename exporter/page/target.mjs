import { ask, Refused } from './exporter.mjs'
import { fill, h, setText, symbolOf } from './dom.mjs'
import { History } from './history.mjs'
import { charts, drawnTracks } from './charts.mjs'
import { ChartView } from './chart.mjs'
import { courseOf, marksOf } from './marks.mjs'
import { MemoryBar } from './memory.mjs'
import {
  EvidenceList, Fixes, VerdictRow, captureErrorOf, holdersOf, knownBugsOf, loadedAddonsOf,
  mallocAddonsOf, openHandlesOf, pilesList, suspectsTable
} from './verdict.mjs'
import { Captures } from './captures.mjs'
import { deathsList } from './deaths.mjs'
import { formatSeconds } from '@memwatch/engine/text/format'

/** Time ranges, each with its step and the interval at which new rows are loaded. */
const RANGES = [
  { name: '10 min', seconds: 600, stepSeconds: 1, everyMs: 2000 },
  { name: '1 h', seconds: 3600, stepSeconds: 10, everyMs: 10_000 },
  { name: '6 h', seconds: 6 * 3600, stepSeconds: 10, everyMs: 10_000 },
  { name: '24 h', seconds: 86_400, stepSeconds: 60, everyMs: 60_000 },
  { name: '7 days', seconds: 7 * 86_400, stepSeconds: 600, everyMs: 60_000 }
]
const JUDGED_EVERY_MS = 2000
const SECOND_MS = 1000

const chartOf = (/** @type {string} */ signal) =>
  charts.find(({ evidence }) => Object.hasOwn(evidence, signal))
const clock = (/** @type {number} */ unixMs) =>
  new Date(unixMs).toLocaleTimeString(undefined, { hourCycle: 'h23' })
/** @typedef {any} Verdict verdict in the form of /api/v1/diagnoses */

const isFound = (/** @type {Verdict} */ { state }) => state === 'confirmed' || state === 'suspected'

/** View of one target: its finding and fix, its memory, the evidence and the charts. */
export class Target {
  #target
  #thread
  #range
  #history = new History(1, 600)
  #heading = h('h1', {})
  #facts = h('p', { class: 'facts' })
  #problem = h('p', { role: 'alert' })
  #state = h('p', { class: 'state' })
  #sentence = h('p', { class: 'sentence' }, 'Loading the verdicts …')
  #countdown = h('strong', { role: 'timer' })
  #until = h('span', {})
  #left = h('p', { class: 'left', hidden: true }, this.#countdown, ' ', this.#until)
  #impact = h('p', { class: 'impact' })
  #also = h('p', { class: 'also' })
  #fixes = new Fixes()
  #followUps = h('ul', { class: 'rows' })
  #finding = h('div', { class: 'finding' },
    this.#state, this.#sentence, this.#left, this.#impact, this.#also, this.#followUps)

  #band = h('section', { 'aria-label': 'Verdict', class: 'band' },
    this.#finding, this.#fixes.element)

  #drawing
  #evidence
  #suspects = h('div', {})
  #attached = h('div', {})
  #holders = h('div', {})
  #why
  #found = h('ul', { class: 'rows' })
  #undecided = h('ul', { class: 'rows' })
  #ruledOut = h('ul', { class: 'rows' })
  #ruledOutCount = h('summary', {})
  #others
  #memory
  #deaths = h('section', { 'aria-label': 'Deaths' })
  #captures
  /** @type {Map<string, VerdictRow>} */
  #rows = new Map()
  #views = charts.map(chart => ({ chart, view: new ChartView(chart) }))
  /** @type {any} target in the form of /api/v1/targets */
  #watched
  /** @type {any} verdict of the headline */
  #primary
  #startedAtUnixMs = 0
  /** Reported time to the limit, and the moment for which it was reported. */
  #deadline = { secondsLeft: /** @type {number | null} */ (null), atUnixMs: 0 }
  /**
   * States of the headline's diagnosis since the page was opened.
   * @type {{ from: number, state: string }[]}
   */
  #states = []
  /** @type {any[]} */
  #capturesMade = []
  /** @type {any[]} */
  #deathsSeen = []
  /** @type {ReturnType<typeof setInterval>[]} */
  #timers = []
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #extending
  #over = false

  /**
   * @param {{ target: string, thread: string, seconds?: number }} of seconds: length of the time
   *   range
   */
  constructor ({ target, thread, seconds }) {
    this.#target = target
    this.#thread = thread
    this.#range = RANGES.find(range => range.seconds === seconds) ?? RANGES[0]
    this.title = `${target} · memwatch`
    const name = thread === 'main' ? target : `${target} ${thread}`
    this.#heading.textContent = name
    this.#captures = new Captures({ target, thread }, captures => this.#showHolders(captures))
    /** @type {ConstructorParameters<typeof EvidenceList>} */
    const drawing = [evidence => this.#courseOf(evidence), evidence => this.#linkToChart(evidence)]
    this.#drawing = drawing
    this.#evidence = new EvidenceList(...drawing)
    this.#why = h('section', { 'aria-label': 'Why', hidden: true },
      h('h2', {}, 'Why'), this.#evidence.element, this.#suspects, this.#attached, this.#holders)
    this.#others = h('section', { 'aria-label': 'Other diagnoses', hidden: true },
      h('h2', {}, 'Other diagnoses'), this.#found, this.#undecided,
      h('details', {}, this.#ruledOutCount, this.#ruledOut))
    this.#memory = new MemoryBar(part => {
      for (const { chart, view } of this.#views) view.choose(!part || chart.parts.includes(part))
    })
    const ranges = h(
      'fieldset',
      { class: 'ranges' },
      h('legend', { class: 'unseen' }, 'Time range'),
      ...RANGES.map(range =>
        h(
          'label',
          {},
          h('input', {
            type: 'radio',
            name: 'range',
            value: range.seconds,
            checked: range === this.#range,
            onchange: () => this.#choose(range)
          }),
          range.name
        )
      )
    )
    this.element = h(
      'div',
      {},
      h('div', { class: 'who' },
        h('p', {}, h('a', { href: '#' }, 'All targets')), this.#heading, this.#facts),
      this.#problem,
      this.#band,
      this.#memory.element,
      this.#why,
      this.#others,
      h('div', { class: 'bar' }, h('h2', {}, 'Charts'), ranges),
      h('p', { class: 'help' },
        h('span', { class: 'swatch rule' }), 'unknown ',
        h('span', { class: 'swatch orange' }), 'suspected ',
        h('span', { class: 'swatch red' }),
        'confirmed, in the band under each chart; ◆ capture, ✕ death'),
      h('div', { class: 'charts' }, ...this.#views.map(({ view }) => view.element)),
      this.#captures.element,
      this.#deaths
    )
    this.#start()
  }

  async #start () {
    await this.refresh()
    this.showDeaths()
    if (this.#over) return
    this.#timers = [
      setInterval(() => this.refresh(), JUDGED_EVERY_MS),
      setInterval(() => this.#countDown(), SECOND_MS)
    ]
    await this.#load(this.#range)
  }

  /**
   * @param {string} target
   * @param {string} thread
   */
  shows (target, thread) {
    return this.#target === target && this.#thread === thread
  }

  /** Loads verdicts and newest values. */
  async refresh () {
    const query = { target: this.#target, thread: this.#thread }
    let problem = 'The exporter does not watch this target.'
    const [[target], [judged]] = await Promise.all([
      ask('targets', query),
      ask('diagnoses', query)
    ]).catch(error => {
      problem = error instanceof Refused ? error.message : 'The exporter does not answer.'
      return [[], []]
    })
    if (this.#over) return
    if (!target || !judged) return setText(this.#problem, problem)
    this.#watched = target
    setText(this.#problem, target.silence
      ? `Silent, reason: ${target.silence.replaceAll('_', ' ')}.`
      : target.up ? '' : 'Gone: the process ended.')
    this.element.classList.toggle('gone', !target.up && !target.silence)
    this.#startedAtUnixMs = target.lastFrameUnixMs - 1000 * target.uptimeSeconds
    const malloc = target.allocator === target.libc ? 'its malloc' : target.allocator
    setText(this.#facts, `pid ${target.pid} · Node ${target.node} · V8 ${target.v8} · ` +
      `${target.libc}, ${malloc} · up ${formatSeconds(target.uptimeSeconds)}`)
    this.#showHeadline(judged)
    this.#showOthers(judged)
    this.#redrawSmall()
    this.#mark()
  }

  /** @param {any} judged */
  #showHeadline ({ headline, verdicts }) {
    const primary = verdicts.find((/** @type {Verdict} */ { diagnosis }) =>
      diagnosis === headline.diagnosis)
    this.#primary = primary
    const state = primary?.state ?? headline.state
    this.#band.className = `band ${headline.severity ?? (headline.state === 'ok' ? 'healthy' : '')}`
    const since = primary?.confirmedAfterSeconds ?? null
    const words = primary
      ? `${state} · ${primary.severity} · ${primary.title}`
      : state === 'ok' ? 'healthy' : state
    fill(this.#state, [words, since], () => [
      symbolOf(state), ' ', h('strong', {}, words),
      since === null ? null : ` since ${clock(this.#startedAtUnixMs + 1000 * since)}`
    ])
    setText(this.#sentence, primary?.summary ?? headline.text)
    setText(this.#impact, primary?.impact ?? '')
    const also = verdicts
      .filter((/** @type {Verdict} */ verdict) =>
        verdict !== primary && isFound(verdict) && !verdict.opportunity)
      .map((/** @type {Verdict} */ { state, title }) => `${state}: ${title}`)
    setText(this.#also, also.length === 0 ? '' : `Also ${also.join('; ')}.`)
    const followUps = verdicts.flatMap((/** @type {Verdict} */ { followUp }) => followUp ?? [])
    fill(this.#followUps, followUps, () => followUps.map(followUpOf))
    const secondsLeft = primary?.secondsLeft ?? null
    // The exporter reports a new time every few seconds, and the page counts down in between.
    if (secondsLeft !== this.#deadline.secondsLeft) {
      this.#deadline = { secondsLeft, atUnixMs: Date.now() + 1000 * (secondsLeft ?? 0) }
    }
    this.#countDown()
    this.#fixes.element.hidden = !primary
    if (primary) this.#fixes.show(primary)
    const last = this.#states.at(-1)
    if (last?.state !== state) this.#states.push({ from: Date.now() / 1000, state })
  }

  #countDown () {
    const { secondsLeft, atUnixMs } = this.#deadline
    this.#left.hidden = secondsLeft === null || !(this.#watched.up || this.#watched.silence)
    if (this.#left.hidden) return
    const seconds = Math.max(0, Math.round((atUnixMs - Date.now()) / 1000))
    setText(this.#countdown, seconds < 3600
      ? `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
      : formatSeconds(seconds))
    const unit = seconds < 3600 ? 'min ' : ''
    setText(this.#until, `${unit}left until the limit, at about ${clock(atUnixMs)}`)
  }

  /** @param {any} judged */
  #showOthers ({ headline, verdicts }) {
    /** @type {Verdict[]} */
    const others = verdicts.filter((/** @type {Verdict} */ { diagnosis }) =>
      diagnosis !== headline.diagnosis)
    this.#others.hidden = others.length === 0
    const found = others.filter(isFound).sort((a, b) => rankOf(a) - rankOf(b))
    fill(this.#found, found.map(({ diagnosis }) => diagnosis), () =>
      found.map(({ diagnosis }) => this.#rowOf(diagnosis).element))
    for (const verdict of found) this.#rowOf(verdict.diagnosis).show(verdict)
    const undecided = others.filter(({ state }) => state === 'unknown')
    fill(this.#undecided, undecided.map(({ title, summary, open }) => [title, summary, open]), () =>
      undecided.map(verdict => h('li', {},
        ...wordsOf(verdict, 'undecided'), this.#progressOf(verdict))))
    const ruledOut = others.filter(({ state }) => state === 'ok')
    fill(this.#ruledOutCount, ruledOut.length, () =>
      [symbolOf('ok'), ` ${ruledOut.length} ruled out`])
    fill(this.#ruledOut, ruledOut.map(({ title, summary }) => [title, summary]), () =>
      ruledOut.map(verdict => h('li', {}, ...wordsOf(verdict, 'ruled out'))))
  }

  /**
   * A bar of the time until an undecided diagnosis is decided.
   * @param {any} verdict
   */
  #progressOf ({ title, open }) {
    if (open?.waitSeconds == null) return null
    const { uptimeSeconds } = this.#watched
    const words = `about ${formatSeconds(open.waitSeconds)} more`
    return h('span', { class: 'wait' }, ' ',
      h('meter', {
        min: 0,
        max: uptimeSeconds + open.waitSeconds,
        value: uptimeSeconds,
        'aria-label': `${title}: ${words}`
      }),
      ` ${words}`)
  }

  /** @param {string} diagnosis */
  #rowOf (diagnosis) {
    const row = this.#rows.get(diagnosis) ?? new VerdictRow(...this.#drawing)
    this.#rows.set(diagnosis, row)
    return row
  }

  /** Redraws the RSS bar and the evidence, which show the history in miniature. */
  #redrawSmall () {
    if (!this.#watched) return
    this.#memory.show(this.#watched.memory, this.#watched.values, this.#history)
    this.#evidence.show(this.#primary?.evidence ?? [])
    const suspects = this.#primary?.suspects
    fill(this.#suspects, suspects, () => suspects &&
      suspectsTable(suspects, id => this.#captures.drawFlameGraph(id)))
    const { captureError, holders, knownBugs = [], openHandles, mallocAddons, loadedAddons } =
      this.#primary ?? {}
    const shown = [captureError, holders, knownBugs, openHandles, mallocAddons, loadedAddons]
    fill(this.#attached, shown, () => [
      captureError ? captureErrorOf(captureError) : null,
      loadedAddons ? loadedAddonsOf(loadedAddons) : null,
      mallocAddons?.length > 0 ? mallocAddonsOf(mallocAddons) : null,
      ...openHandles?.length > 0 ? openHandlesOf(openHandles) : [],
      ...holders ? holdersOf(holders) : [],
      ...knownBugs.length > 0 ? knownBugsOf(knownBugs) : []
    ])
    this.#holders.hidden = Boolean(holders)
    this.#why.hidden = !this.#primary && !this.#holders.firstChild
  }

  /** Shows the piles of the newest heap snapshot, and their holders. @param {any[]} captures */
  #showHolders (captures) {
    this.#capturesMade = captures
    const piles = captures.find(({ retainers }) => retainers?.piles?.length > 0)?.retainers.piles
    fill(this.#holders, piles, () => piles &&
      [h('h3', {}, 'Held by, in the last heap snapshot'), pilesList(piles)])
  }

  /** @param {import('./marks.mjs').Evidence} evidence */
  #courseOf (evidence) {
    const chart = chartOf(evidence.signal)
    return chart ? courseOf(chart, evidence, this.#history) : { values: [] }
  }

  /** @param {import('./marks.mjs').Evidence} evidence */
  #linkToChart ({ signal }) {
    const chart = chartOf(signal)
    return chart && h('a', {
      href: `#chart-${chart.id}`,
      onclick: (/** @type {Event} */ event) => {
        event.preventDefault()
        document.getElementById(`chart-${chart.id}`)?.scrollIntoView({ block: 'center' })
      }
    }, 'chart')
  }

  async showDeaths () {
    const deaths = await ask('deaths', { target: this.#target, limit: 20 }).catch(() => [])
    this.#deathsSeen = deaths
    const list = deathsList(deaths)
    this.#deaths.replaceChildren(...list ? [h('h2', {}, 'Deaths under this name'), list] : [])
  }

  showCaptures () {
    this.#captures.refresh()
  }

  /** @param {typeof RANGES[number]} range */
  async #choose (range) {
    const at = new URLSearchParams(location.hash.slice(1))
    at.set('seconds', String(range.seconds))
    history.replaceState(null, '', `#${at}`)
    await this.#load(range)
  }

  /** @param {typeof RANGES[number]} range */
  async #load (range) {
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
    // The request covers a little more than the missing time; rows that are already present are
    // dropped.
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
    this.#redrawSmall()
    this.#mark()
    for (const { view } of this.#views) {
      // The pause lets the browser handle a click in between.
      await new Promise(resolve => setTimeout(resolve))
      if (history !== this.#history || this.#over) return
      view.show(history)
    }
  }

  #mark () {
    const start = this.#startedAtUnixMs / 1000
    const confirmed = this.#primary?.confirmedAfterSeconds ?? null
    const states = confirmed === null
      ? [{ from: start, state: 'unknown' }, ...this.#states]
      : [{ from: start, state: 'unknown' }, { from: start + confirmed, state: 'confirmed' }]
    const events = [
      ...this.#capturesMade.map(({ requestedUnixMs: at }) => ({ at, symbol: '◆' })),
      ...this.#deathsSeen.map(({ diedAtUnixMs: at }) => ({ at, symbol: '✕' }))
    ].map(({ at, symbol }) => ({ time: at / 1000, symbol }))
    const shown = {
      history: this.#history,
      values: this.#watched?.values ?? {},
      evidence: this.#primary?.evidence ?? []
    }
    for (const { chart, view } of this.#views) view.mark(marksOf(chart, shown), { states, events })
  }

  redraw () {
    for (const { view } of this.#views) view.redraw()
  }

  resize () {
    for (const { view } of this.#views) view.resize()
  }

  remove () {
    this.#over = true
    for (const timer of this.#timers) clearInterval(timer)
    clearInterval(this.#extending)
    for (const { view } of this.#views) view.remove()
    this.#captures.remove()
  }
}

/**
 * Symbols of the endings of a follow-up.
 * @type {Record<string, string>}
 */
const FOLLOW_UP_STATES = {
  fixed_as_predicted: 'ok',
  helped_less: 'suspected',
  did_not_help: 'confirmed',
  did_not_arrive: 'confirmed'
}

/**
 * Follow-up of an advised change with which this process was started.
 * @param {any} followUp follow-up of a verdict
 */
const followUpOf = ({ title, fix, startedAtUnixMs, ending, text }) => h('li', { class: 'follow-up' },
  symbolOf(FOLLOW_UP_STATES[ending] ?? 'unknown'),
  ' ', h('b', {}, title), ` applied ${clock(startedAtUnixMs)}: ${fix}. ${text}`)

/**
 * @param {Verdict} verdict
 * @param {string} state state in words
 */
const wordsOf = ({ state: of, title, summary }, state) =>
  [symbolOf(of), ' ', h('b', {}, title), ` ${state}: ${summary}`]

/**
 * Rank of a verdict: confirmed before suspected, opportunities last.
 * @param {any} verdict
 */
const rankOf = ({ state, opportunity }) => opportunity ? 2 : state === 'confirmed' ? 0 : 1
