import { apiPath, ask, Refused } from './exporter.mjs'
import { fill, h, setText } from './dom.mjs'
import { kinds } from '../captures/kinds.js'
import { formatBytes } from '@memwatch/engine/text/format'
import { pilesList, time } from './verdict.mjs'

const ASK_EVERY_MS = 1000
const SHOWN = 10

/** Profiles and snapshots of one target: requests, list, downloads, flame graphs and suspects. */
export class Captures {
  #target
  #thread
  #kind
  #seconds
  #said = h('p', { role: 'status' })
  #list = h('div', {})
  #dialog
  #frame
  #onList
  /** @type {any[]} newest first */
  #captures = []
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer

  /**
   * @param {{ target: string, thread: string }} of
   * @param {(captures: any[]) => void} onList called with the captures, newest first
   */
  constructor ({ target, thread }, onList) {
    this.#onList = onList
    this.#target = target
    this.#thread = thread
    const help = h('p', { class: 'help' })
    const chosen = () => kinds[/** @type {keyof typeof kinds} */ (this.#kind.value)]
    const explain = () => {
      const { title, help: words, seconds, mostSeconds } = chosen()
      setText(help, `${title}: ${words}.`)
      this.#seconds.value = String(seconds)
      this.#seconds.max = String(mostSeconds)
      this.#seconds.disabled = mostSeconds === 0
    }
    this.#kind = h(
      'select',
      { 'aria-label': 'What to capture', onchange: explain },
      ...Object.keys(kinds).map(kind => h('option', { value: kind }, kind.replaceAll('_', ' ')))
    )
    this.#seconds = h('input', { type: 'number', min: 0, 'aria-label': 'Seconds' })
    this.#frame = h('iframe', { title: 'Flame graph' })
    this.#dialog = h(
      'dialog',
      {
        'aria-label': 'Flame graph',
        onclose: () => {
          this.#frame.src = 'about:blank'
        }
      },
      h('form', { method: 'dialog' }, h('button', {}, 'Close')),
      this.#frame
    )
    this.element = h('section', { 'aria-label': 'Captures' },
      h('h2', {}, 'Captures'),
      h('form', { class: 'bar', onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); this.#take() } }, this.#kind, h('label', {}, this.#seconds, ' seconds '), h('button', {}, 'Take')),
      help, this.#said, this.#list, this.#dialog)
    explain()
    this.refresh()
  }

  async #take () {
    const kind = this.#kind.value
    try {
      const seconds = this.#seconds.disabled ? undefined : this.#seconds.value
      await ask(
        `targets/${encodeURIComponent(this.#target)}/captures`,
        { kind, seconds, thread: this.#thread },
        'POST'
      )
      setText(this.#said, `A ${kind.replaceAll('_', ' ')} is running …`)
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      setText(this.#said, error.message)
    }
    this.refresh()
  }

  /** Lists the captures, repeatedly while one is running. */
  async refresh () {
    clearTimeout(this.#timer)
    /** @type {any[]} */
    const captures = (await ask('captures', { target: this.#target }).catch(() => [])).filter((/** @type {any} */ { thread }) => thread === this.#thread).slice(0, SHOWN)
    if (captures.some(({ state }) => state === 'running')) {
      this.#timer = setTimeout(() => this.refresh(), ASK_EVERY_MS)
    } else if (this.#said.textContent?.endsWith('…')) setText(this.#said, 'Done.')
    this.#captures = captures
    this.#onList(captures)
    fill(this.#list, captures, () =>
      captures.length === 0
        ? h('p', {}, 'None is kept.')
        : captures.map(capture => this.#item(capture))
    )
  }

  /** @param {any} capture */
  #item (capture) {
    const { kind, state, error, requestedUnixMs, diagnosis, suspects, retainers } = capture
    return h('article', { class: 'capture' },
      h('p', {},
        h('strong', {}, kind.replaceAll('_', ' ')),
        ' ',
        time(requestedUnixMs),
        diagnosis ? `, automatic, for ${diagnosis}` : '',
        `: ${state}`,
        error ? `: ${error}` : ''),
      state === 'done' && h('p', { class: 'links' }, ...this.#links(capture)),
      suspects &&
        h('ol', {}, ...suspects.sites
          .slice(0, 5)
          .map((/** @type {any} */ { text }) => h('li', {}, h('code', {}, text)))),
      retainers && (retainers.refused
        ? h('p', {}, `Its holders were not analysed: ${retainers.refused}`)
        : pilesList(retainers.piles)))
  }

  /** Links to the downloads of a capture, and to its flame graph. @param {any} capture */
  #links (capture) {
    const { id, kind, requestedUnixMs, parts, suspects } = capture
    const isProfile = kind.endsWith('_profile')
    const of = `${kind.replaceAll('_', ' ')} of ${new Date(requestedUnixMs).toLocaleTimeString()}`
    const download = (/** @type {string} */ href, /** @type {string} */ name, text = name) =>
      h('a', { href, download: true, 'aria-label': `Download ${name}, ${of}` }, text)
    return [
      ...parts.map((/** @type {any} */ { part, bytes }) =>
        download(apiPath(`captures/${id}/${part}`), part, `${part}, ${formatBytes(bytes)}`)),
      isProfile &&
        download(apiPath(`captures/${id}/${parts.at(-1).part}`, { format: 'pprof' }), 'pprof'),
      (suspects || capture.retainers) &&
        h('a', {
          href: apiPath(`captures/${id}/suspects.md`),
          'aria-label': `Suspects as Markdown, ${of}`
        }, 'suspects.md'),
      isProfile &&
        h('button', {
          type: 'button',
          'aria-label': `Flame graph, ${of}`,
          onclick: () => this.#draw(capture)
        }, 'Flame graph')
    ]
  }

  /** @param {string} id of a profile in the list */
  drawFlameGraph (id) {
    const capture = this.#captures.find(capture => capture.id === id)
    if (capture) this.#draw(capture)
  }

  /** @param {any} capture */
  #draw ({ id, kind, target, thread, parts }) {
    const search = new URLSearchParams({
      profileURL: apiPath(`captures/${id}/${parts.at(-1).part}`),
      title: `${target} ${thread} ${kind}`
    })
    this.#frame.src = `/flame/#${search.toString().replaceAll('+', '%20')}`
    this.#dialog.showModal()
  }

  remove () {
    clearTimeout(this.#timer)
  }
}
