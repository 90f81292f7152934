import { copy, fill, h, setText, symbolOf } from './dom.mjs'
import { loadedAddonsText } from '@memwatch/engine/text/addons-text'
import { formatBytes, formatRatio, formatSeconds, formatValue } from '@memwatch/engine/text/format'
import { bullet, miniature } from './miniature.mjs'
import { shellAssignments } from '@memwatch/engine/text/shell'

/** @typedef {any} Verdict verdict in the form of /api/v1/diagnoses */

/**
 * The forms of a change, the most common first.
 * @type {readonly (readonly [form: string, title: string])[]}
 */
const FORMS = [
  ['flag', 'Command line'],
  ['env', 'Environment'],
  ['dockerfile', 'Dockerfile'],
  ['kubernetes', 'Kubernetes patch'],
  ['code', 'In the code']
]
/** Number of visible lines of evidence; the others unfold. */
const SHOWN_EVIDENCE = 3
const SHOWN_SUSPECTS = 5
const COPIED_MS = 2000
const RUNBOOKS = 'https://github.com/memwatch/memwatch/blob/main/alerts/runbooks'

/**
 * A fix: its change on one line, a menu that copies each form of the change, and its predicted
 * effects as bars. An open menu stays open while predictions change.
 */
class Fix {
  element = h('section', { class: 'fix' })
  #title = h('h3', {})
  #change = h('div', {})
  #predicted = h('ul', { class: 'predicted', 'aria-label': 'Predicted' })
  #risk = h('p', { class: 'risk' })

  constructor () {
    this.element.append(this.#title, this.#change, this.#predicted, this.#risk)
  }

  /**
   * @param {any} fix fix in the form of /api/v1/diagnoses
   * @param {number} i index among the fixes of a verdict
   */
  show ({ title, change, predicted, risk }, i) {
    setText(this.#title, `${i === 0 ? 'Fix' : 'Or'}: ${title}`)
    fill(this.#change, change, () => [
      ...changeOf(change),
      change.note && h('p', { class: 'risk' }, change.note)
    ])
    fill(this.#predicted, predicted, () => predicted.map(predictionOf))
    setText(this.#risk, `Note: ${risk}`)
  }
}

/** @param {any} change */
function changeOf (change) {
  const forms = FORMS.filter(([form]) => change[form] !== undefined).map(([form, name]) => ({
    form,
    name,
    text: form === 'env' ? shellAssignments(change.env).join('\n') : change[form]
  }))
  if (forms.length === 0) return []
  const [{ form, name, text }] = forms
  const line = h('pre', { tabindex: 0, role: 'region', 'aria-label': name }, text)
  if (form === 'code') line.classList.add('prose')
  const said = h('span', { class: 'said', role: 'status' })
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let clearing
  const button = (/** @type {typeof forms[number]} */ { name, text }, words = name) => h('button', {
    type: 'button',
    'aria-label': `Copy ${name}`,
    onclick: async (/** @type {{ currentTarget: HTMLElement }} */ { currentTarget: pressed }) => {
      line.textContent = text
      line.setAttribute('aria-label', name)
      menu.removeAttribute('open')
      const isCopied = await copy(text, pressed)
      setText(said, isCopied ? `Copied: ${name}` : 'The browser does not allow copying')
      clearTimeout(clearing)
      clearing = setTimeout(() => setText(said, ''), COPIED_MS)
    }
  }, words)
  const menu = h('details', {
    class: 'menu',
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== 'Escape' || !menu.open) return
      menu.open = false
      menu.querySelector('summary')?.focus()
    }
  }, h('summary', {}, 'Copy'), h('ul', {}, ...forms.map(each => h('li', {}, button(each)))))
  const copying = forms.length > 1 ? menu : button(forms[0], 'Copy')
  return [h('div', { class: 'form' }, line, copying), said]
}

/** @param {{ name: string, from: number, to: number, unit: string }} predicted */
function predictionOf ({ name, from, to, unit }) {
  const most = Math.max(from, to)
  const bar = (/** @type {string} */ kind, /** @type {number} */ value) => {
    const filled = h('i', { class: kind })
    filled.style.width = `${most > 0 ? Math.max(1, 100 * value / most) : 1}%`
    return h('span', { class: 'bars', 'aria-hidden': 'true' }, filled)
  }
  const [before, after] = [from, to].map(value =>
    formatValue(value, unit).replaceAll(' ', '\u00A0'))
  const words = `${name} ${before} → ${after}`
  const bars = h('span', { class: 'pair' }, bar('from', from), bar('to', to))
  return h('li', {}, h('span', {}, words), bars)
}

/** Fixes of a verdict: the first one, then the others folded, then the link to the runbook. */
export class Fixes {
  element = h('div', { class: 'fixes' })
  #first = new Fix()
  #others = h('div', {})
  #more = h('details', {}, h('summary', {}), this.#others)
  #runbook = h('p', {})
  /** @type {Fix[]} */
  #rest = []

  constructor () {
    this.element.append(this.#first.element, this.#more, this.#runbook)
  }

  /** @param {Pick<Verdict, 'fix' | 'runbook'>} verdict */
  show ({ fix, runbook }) {
    this.#first.element.hidden = fix.length === 0
    if (fix.length > 0) this.#first.show(fix[0], 0)
    this.#more.hidden = fix.length < 2
    /** @type {any[]} */
    const others = fix.slice(1)
    setText(/** @type {Element} */ (this.#more.firstElementChild),
      others.length === 1 ? '1 other fix' : `${others.length} other fixes`)
    while (this.#rest.length < others.length) this.#rest.push(new Fix())
    this.#rest.length = others.length
    fill(this.#others, others.length, () => this.#rest.map(({ element }) => element))
    others.forEach((other, i) => this.#rest[i].show(other, i + 1))
    fill(this.#runbook, runbook, () => runbook &&
      ['Runbook: ', h('a', { href: `${RUNBOOKS}/${runbook}.md` }, runbook)])
  }
}

/**
 * Evidence of a verdict: three lines, each with its series and threshold in miniature; more lines
 * unfold.
 */
export class EvidenceList {
  element = h('div', {})
  #courseOf
  #goTo
  #shown = h('ul', { class: 'why' })
  #rest = h('ul', { class: 'why' })
  #more = h('details', {}, h('summary', {}), this.#rest)

  /**
   * @param {(evidence: import('./marks.mjs').Evidence) => import('./marks.mjs').Course} courseOf
   * @param {(evidence: import('./marks.mjs').Evidence) => HTMLElement | undefined} goTo link to the
   *   chart of the evidence
   */
  constructor (courseOf, goTo) {
    this.#courseOf = courseOf
    this.#goTo = goTo
    this.element.append(this.#shown, this.#more)
  }

  /** @param {import('./marks.mjs').Evidence[]} evidence */
  show (evidence) {
    const rest = evidence.slice(SHOWN_EVIDENCE)
    this.#fill(this.#shown, evidence.slice(0, SHOWN_EVIDENCE))
    this.#fill(this.#rest, rest)
    this.#more.hidden = rest.length === 0
    setText(/** @type {Element} */ (this.#more.firstElementChild), `${rest.length} more`)
  }

  /**
   * @param {HTMLElement} list
   * @param {import('./marks.mjs').Evidence[]} evidence
   */
  #fill (list, evidence) {
    fill(list, evidence.map(({ signal }) => signal), () => evidence.map(item => h(
      'li',
      {},
      h('span', { class: 'drawing' }),
      h('span', {}, h('span', {}), ' ', this.#goTo(item))
    )))
    evidence.forEach((item, i) => {
      const [drawing, words] = list.children[i].children
      setText(/** @type {Element} */ (words.firstElementChild), item.text)
      const { values, threshold, trend } = this.#courseOf(item)
      const ends = trend && /** @type {[number, number]} */ ([trend[1], trend[3]])
      const drawn = miniature(values, { threshold, trend: ends, isZeroBased: !ends }) ??
        bullet(item.value, item.limit)
      drawing.replaceChildren(...drawn ? [drawn] : [])
    })
  }
}

/**
 * Suspects as a table: line, package, share, amount, flame graph.
 * @param {any} attached suspects of a verdict, in the form of /api/v1/diagnoses
 * @param {(captureId: string) => void} drawFlameGraph
 * @returns {HTMLElement[]}
 */
export function suspectsTable ({ captureId, kind, suspects }, drawFlameGraph) {
  const isTime = suspects.of.endsWith('seconds')
  const heads = ['Line', 'Package', 'Share', isTime ? 'Time' : 'Size']
  const graph = kind.endsWith('_profile') &&
    h('button', { type: 'button', onclick: () => drawFlameGraph(captureId) }, 'Flame graph')
  const rows = suspects.sites.slice(0, SHOWN_SUSPECTS).map((/** @type {any} */ site) => h('tr', {},
    h('th', { scope: 'row' },
      h('code', {}, `${site.file}:${site.line}`), h('small', {}, noteOf(site))),
    h('td', { 'data-head': heads[1] }, packageOf(site)),
    h('td', { class: 'number', 'data-head': heads[2] }, formatRatio(site.share)),
    h('td', { class: 'number', 'data-head': heads[3] },
      isTime ? formatSeconds(site.value) : formatBytes(site.value))))
  return [
    h('h3', {}, 'Suspects, by a ', kind.replaceAll('_', ' '), ' ', graph),
    h('div', { class: 'scrolls', tabindex: 0, role: 'region', 'aria-label': 'Suspects' },
      h('table', { class: 'suspects' },
        h('thead', {}, h('tr', {}, ...heads.map(head => h('th', { scope: 'col' }, head)))),
        h('tbody', {}, ...rows)))
  ]
}

/** @param {any} site */
const noteOf = ({ function: name, inlinedIn, call, instead }) => [
  name,
  inlinedIn && `perhaps, inlined into ${inlinedIn}`,
  call && `${call}${instead ? `, instead: ${instead}` : ''}`
].filter(Boolean).join('; ')

/** @param {{ via: string | null, file: string }} site */
const packageOf = ({ via, file }) =>
  via ?? /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1] ?? 'the app'

/**
 * Piles of a heap snapshot, each with the path that holds it, which unfolds on demand.
 * @param {{ text: string, path: string[] }[]} piles
 */
export const pilesList = piles => h('ol', {}, ...piles.map(({ text, path }) => h('li', {},
  h('details', {},
    h('summary', {}, text),
    h('ol', { class: 'path' }, ...path.map(line => h('li', {}, h('code', {}, line))))))))

/**
 * Piles of a heap snapshot, with the source of the snapshot; each pile has the path that holds it.
 * @param {any} holders holders of a verdict or a death
 */
export const holdersOf = ({ file, atUnixMs, sinceUnixMs, refused, piles }) => [
  h('h3', {}, 'Held by, in a heap snapshot'),
  h('p', {},
    file ? 'V8 wrote ' : 'Captured ',
    file && h('code', {}, file),
    file && ', ',
    time(atUnixMs),
    sinceUnixMs === null ? null : '; only objects newer than the earlier snapshot ',
    sinceUnixMs === null ? null : time(sinceUnixMs)),
  refused ? h('p', {}, `Not analysed: ${refused}`) : pilesList(piles)
]

/**
 * @param {{ text: string, workaround: string | null, thread: string }[]} bugs known bugs of a
 *   verdict
 */
export const knownBugsOf = bugs => [
  h('h3', {}, 'Known bugs'),
  h('ul', {}, ...bugs.slice(0, SHOWN_SUSPECTS).map(({ text, workaround, thread }) => {
    const around = workaround === null ? '' : ` Workaround if it is the cause: ${workaround}.`
    return h('li', {}, `${text}${around} `, h('a', { href: thread }, 'Thread'))
  }))
]

/** @param {string} error reason why a capture of a verdict was not possible */
export const captureErrorOf = error =>
  h('p', {}, `No line of code is named, because no profile could be made: ${error}`)

/** @param {string[]} addons addons that a verdict names */
export const mallocAddonsOf = addons =>
  h('p', {}, `Addons with their own malloc: ${addons.join(', ')}`)

/** @param {string[]} addons file names */
export const loadedAddonsOf = addons => h('p', {}, loadedAddonsText(addons))

/** @param {{ count: number, text: string }[]} handles of a verdict */
export const openHandlesOf = handles => [
  h('h3', {}, 'Held open when it was found'),
  h('ul', {}, ...handles.map(({ count, text }) => h('li', {}, `${count} ${text}`)))
]

/** A diagnosis other than the headline's: one row that unfolds. */
export class VerdictRow {
  #summary = h('summary', {})
  #impact = h('p', {})
  #evidence
  #fixes = new Fixes()

  /** @param {ConstructorParameters<typeof EvidenceList>} of */
  constructor (...of) {
    this.#evidence = new EvidenceList(...of)
    this.element = h('li', { class: 'verdict' }, h('details', {},
      this.#summary, this.#impact, this.#evidence.element, this.#fixes.element))
  }

  /** @param {Verdict} verdict */
  show (verdict) {
    const { diagnosis, title, state, severity, opportunity, summary, impact, evidence } = verdict
    const isFound = state === 'confirmed' || state === 'suspected'
    const word = isFound ? (opportunity ? 'to gain' : `${state}, ${severity}`) : ''
    this.element.className = `verdict ${isFound ? severity : ''}`
    fill(this.#summary, [state, title, diagnosis, word, summary], () => [
      symbolOf(state), ' ', h('b', {}, title), ` ${word}: ${summary}`
    ])
    setText(this.#impact, impact ?? '')
    this.#evidence.show(evidence)
    this.#fixes.show(verdict)
  }
}

/** @param {number} unixMs */
export const time = unixMs =>
  h(
    'time',
    { datetime: new Date(unixMs).toISOString() },
    new Date(unixMs).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
  )
