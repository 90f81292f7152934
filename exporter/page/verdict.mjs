import { copyButton, fill, h } from './dom.mjs'
import { formatSeconds, formatValue } from './format.mjs'
import { shellAssignments } from './shell.mjs'

/** @typedef {any} Verdict as /api/v1/diagnoses has it */

/**
 * The forms of a change, in the order that most people look for them.
 * @type {readonly (readonly [form: string, title: string])[]}
 */
const FORMS = [
  ['flag', 'Command line'],
  ['env', 'Environment'],
  ['dockerfile', 'Dockerfile'],
  ['kubernetes', 'Kubernetes patch'],
  ['code', 'In the code']
]

/** One verdict: a card that changes only where what it says has changed. */
export class VerdictCard {
  #head = h('header', {})
  #summary = h('div', {})
  #evidence = h('div', {})
  #suspects = h('div', {})
  #holders = h('div', {})
  #fix = h('div', {})
  #ruledOut = h('div', {})

  /**
   * @param {string} diagnosis
   * @param {(signal: string) => string | undefined} chartOf where a signal's evidence is drawn: the
   *   id of a chart
   */
  constructor (diagnosis, chartOf) {
    this.chartOf = chartOf
    this.element = h(
      'article',
      { class: 'verdict', 'aria-label': diagnosis },
      this.#head,
      this.#summary,
      this.#evidence,
      this.#suspects,
      this.#holders,
      this.#fix,
      this.#ruledOut
    )
  }

  /**
   * @param {Verdict} verdict
   * @param {number} startedAtUnixMs of the process
   */
  show (verdict, startedAtUnixMs) {
    const {
      diagnosis,
      title,
      state,
      severity,
      opportunity,
      confirmedAfterSeconds,
      summary,
      impact,
      evidence,
      suspects,
      holders,
      fix,
      ruledOut,
      runbook
    } = verdict
    this.element.className = `verdict ${opportunity ? 'opportunity' : state}`
    fill(this.#head, [title, state, severity, confirmedAfterSeconds, startedAtUnixMs], () => [
      h('h3', {}, title),
      h(
        'p',
        { class: 'how-sure' },
        h('strong', {}, opportunity ? `opportunity, ${state}` : state),
        ` · ${severity} · ${diagnosis}`,
        confirmedAfterSeconds === null
          ? null
          : [
              ' · since ',
              time(startedAtUnixMs + 1000 * confirmedAfterSeconds),
              `, ${formatSeconds(confirmedAfterSeconds)} after the start`
            ]
      )
    ])
    fill(this.#summary, [summary, impact], () => [
      h('p', { class: 'summary' }, summary),
      impact && h('p', {}, impact)
    ])
    fill(this.#evidence, evidence, () => evidence.length > 0 && [h('h4', {}, 'Evidence'), h('ul', {}, ...evidence.map((/** @type {any} */ { signal, text }) => h('li', {}, text, ' ', this.#where(signal))))])
    fill(this.#suspects, suspects, () => suspects && [
      h('h4', {}, `Suspects, by a ${suspects.kind}`),
      h('ol', {}, ...suspects.suspects.sites.slice(0, 5).map((/** @type {any} */ { text }) => h('li', {}, h('code', {}, text))))
    ])
    fill(this.#holders, holders, () => holders && holdersOf(holders))
    fill(this.#fix, [fix, runbook], () => [...fix.map(fixOf), runbook && runbookOf(runbook)])
    fill(this.#ruledOut, ruledOut, () => ruledOut.length > 0 && h('details', {}, h('summary', {}, `Ruled out: ${ruledOut.length} others`), h('ul', {}, ...ruledOut.map((/** @type {any} */ { diagnosis, text }) => h('li', {}, h('b', {}, diagnosis), `: ${text}`)))))
  }

  /** @param {string} signal */
  #where (signal) {
    const chart = this.chartOf(signal)
    return chart && h('a', { href: `#chart-${chart}`, onclick: (/** @type {Event} */ event) => { event.preventDefault(); document.getElementById(`chart-${chart}`)?.scrollIntoView({ block: 'center' }) } }, 'on its chart')
  }
}

/** @param {string} runbook its name */
const runbookOf = runbook => h(
  'p',
  {},
  'Runbook: ',
  h('a', {
    href: `https://github.com/memwatch/memwatch/blob/main/alerts/runbooks/${runbook}.md`
  }, runbook)
)

/**
 * Piles of a heap snapshot, each with the path that holds it.
 * @param {any} holders of a verdict or a death
 */
export const holdersOf = ({ file, atUnixMs, sinceUnixMs, refused, piles }) => [
  h('h4', {}, 'Held, by a heap snapshot'),
  h('p', {},
    file ? 'V8 wrote ' : 'Captured ',
    file && h('code', {}, file),
    file && ', ',
    time(atUnixMs),
    sinceUnixMs === null ? null : '; only objects that came since ',
    sinceUnixMs === null ? null : time(sinceUnixMs)),
  refused ? h('p', {}, `Not analysed: ${refused}`) : pilesOf(piles)
]

/** @param {any[]} piles */
export const pilesOf = piles => h('ol', {}, ...piles.map(({ text, path }) => h('li', {},
  h('details', {},
    h('summary', {}, text),
    h('ol', {}, ...path.map((/** @type {string} */ line) => h('li', {}, h('code', {}, line))))))))

/**
 * @param {any} fix
 * @param {number} i
 */
function fixOf ({ title, change, predicted, risk }, i) {
  const forms = FORMS.filter(([form]) => change[form] !== undefined).map(([form, name]) => ({
    name,
    text: form === 'env' ? shellAssignments(change.env).join('\n') : change[form]
  }))
  return h(
    'section',
    { class: 'fix' },
    h('h4', {}, `${i === 0 ? 'Fix' : 'Or'}: ${title}`),
    ...forms.map(({ name, text }) =>
      h(
        'div',
        { class: 'form' },
        h('span', { class: 'name' }, name),
        h('pre', { tabindex: 0, role: 'region', 'aria-label': name }, text),
        copyButton(text, name)
      )
    ),
    change.note && h('p', {}, change.note),
    predicted.length > 0 &&
      h(
        'p',
        {},
        'Expect ',
        predicted
          .map(
            (/** @type {any} */ { name, from, to, unit }) =>
              `${name} from ${formatValue(from, unit)} to about ${formatValue(to, unit)}`
          )
          .join('; '),
        '.'
      ),
    h('p', { class: 'risk' }, `Note: ${risk}`)
  )
}

/** @param {number} unixMs */
export const time = unixMs =>
  h(
    'time',
    { datetime: new Date(unixMs).toISOString() },
    new Date(unixMs).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
  )
