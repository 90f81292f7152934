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
  #knownBugs = h('div', {})
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
      this.#knownBugs,
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
      knownBugs,
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
    fill(this.#suspects, suspects, () => suspects && suspectsOf(suspects))
    fill(this.#knownBugs, knownBugs, () => knownBugs.length > 0 && knownBugsOf(knownBugs))
    fill(this.#fix, [fix, runbook], () => [
      ...fix.map(fixOf),
      runbook &&
        h(
          'p',
          {},
          'Runbook: ',
          h(
            'a',
            {
              href: `https://github.com/memwatch/memwatch/blob/main/alerts/runbooks/${runbook}.md`
            },
            runbook
          )
        )
    ])
    fill(this.#ruledOut, ruledOut, () => ruledOut.length > 0 && othersOf(ruledOut))
  }

  /** @param {string} signal */
  #where (signal) {
    const chart = this.chartOf(signal)
    return chart && h('a', { href: `#chart-${chart}`, onclick: (/** @type {Event} */ event) => { event.preventDefault(); document.getElementById(`chart-${chart}`)?.scrollIntoView({ block: 'center' }) } }, 'on its chart')
  }
}

/** @param {any} suspects */
const suspectsOf = ({ kind, suspects }) => [
  h('h4', {}, `Suspects, by a ${kind}`),
  h('ol', {}, ...suspects.sites.slice(0, 5).map((/** @type {any} */ { text }) =>
    h('li', {}, h('code', {}, text))))
]

/** @param {{ text: string, workaround: string | null, thread: string }[]} bugs */
const knownBugsOf = bugs => [
  h('h4', {}, 'Known bugs'),
  h('ul', {}, ...bugs.slice(0, 5).map(({ text, workaround, thread }) => {
    const around = workaround === null ? '' : ` Workaround: ${workaround}.`
    return h('li', {}, `${text}${around} `, h('a', { href: thread }, 'Thread'))
  }))
]

/** @param {{ diagnosis: string, text: string }[]} ruledOut */
const othersOf = ruledOut => h(
  'details',
  {},
  h('summary', {}, `Ruled out: ${ruledOut.length} others`),
  h('ul', {}, ...ruledOut.map(({ diagnosis, text }) =>
    h('li', {}, h('b', {}, diagnosis), `: ${text}`)))
)

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
