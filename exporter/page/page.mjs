import { listen } from './exporter.mjs'
import { setText } from './dom.mjs'
import { Fleet } from './fleet.mjs'
import { Target } from './target.mjs'
import { Death } from './deaths.mjs'

/**
 * The page shows all targets, one target, or one death, depending on the fragment of the URL.
 * Events of the exporter go to the open view.
 *
 * @typedef {object} View
 * @property {string} title
 * @property {HTMLElement} element
 * @property {() => void} remove
 * @property {() => void} [redraw]
 * @property {() => void} [resize]
 * @property {(event: KeyboardEvent) => void} [press] handles a key, whichever element has the focus
 */

const content = /** @type {HTMLElement} */ (document.getElementById('content'))
const news = /** @type {HTMLElement} */ (document.getElementById('news'))
const connection = /** @type {HTMLElement} */ (document.getElementById('connection'))

/** @type {View} */
let view
/** @type {any[] | undefined} */
let targets

function open () {
  const at = new URLSearchParams(location.hash.slice(1))
  const [target, death] = [at.get('target'), at.get('death')]
  if (/^#[^=]+$/.test(location.hash)) return // The link leads to a place within the page.
  view?.remove()
  view = target
    ? new Target({
      target, thread: at.get('thread') ?? 'main', seconds: Number(at.get('seconds'))
    })
    : death
      ? new Death(death)
      : new Fleet(at)
  document.title = view.title
  content.replaceChildren(view.element)
  if (view instanceof Fleet && targets) view.showTargets(targets)
}

/** Announces a text to users of screen readers. @param {string} text */
const tell = text => setText(news, text)

listen({
  targets (rows) {
    targets = rows
    if (view instanceof Fleet) view.showTargets(rows)
  },
  verdict ({ target, thread, state, title, summary }) {
    if (state === 'confirmed') tell(`${target}: ${title}. ${summary}`)
    if (view instanceof Target && view.shows(target, thread)) view.refresh()
  },
  death ({ target, text }) {
    tell(`${target}: ${text}`)
    if (view instanceof Fleet || view instanceof Target) view.showDeaths()
  },
  captured () {
    if (!(view instanceof Target)) return
    view.showCaptures()
    view.refresh()
  }
}, connected => {
  connection.className = connected ? 'up' : 'down'
  setText(connection, connected ? 'live' : 'the exporter does not answer; trying again …')
})

window.addEventListener('hashchange', open)
window.addEventListener('keydown', event => view.press?.(event))
window.addEventListener('resize', () => view.resize?.())
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => view.redraw?.())
document.querySelector('.skip')?.addEventListener('click', event => {
  event.preventDefault()
  content.focus()
})
open()
