import { ask, Refused } from './exporter.mjs'
import { fill, h, setText } from './dom.mjs'
import { time } from './verdict.mjs'

const ASK_EVERY_MS = 10_000

/** Processes of Node.js without an agent, if the exporter may attach to them. */
export class Processes {
  #said = h('p', { role: 'status' })
  #list = h('ul', { class: 'processes' })
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer
  #isAttaching = false
  #isRemoved = false
  element = h('section', { 'aria-label': 'Processes without an agent' },
    h('h2', {}, 'Processes without an agent'), this.#said, this.#list)

  constructor () {
    this.element.hidden = true
    this.refresh()
  }

  async refresh () {
    clearTimeout(this.#timer)
    const { isEnabled, processes } = await ask('processes').catch(() => ({}))
    if (isEnabled === false || this.#isRemoved) return
    this.#timer = setTimeout(() => this.refresh(), ASK_EVERY_MS)
    if (!isEnabled) return // The exporter does not answer.
    this.element.hidden = processes.length === 0 && !this.#said.textContent
    fill(this.#list, [processes, this.#isAttaching], () =>
      processes.map((/** @type {any} */ one) => this.#item(one)))
  }

  /** @param {any} process */
  #item ({ pid, startTimeTicks, name, startedAtUnixMs, refusal }) {
    return h('li', {}, ...refusal
      ? [`${refusal}.`]
      : [
          `${name}, since ${time(startedAtUnixMs)} `,
          h('button', {
            type: 'button',
            'aria-label': `Attach to ${name}`,
            disabled: this.#isAttaching,
            onclick: () => this.#attach({ pid, startTimeTicks, name })
          }, 'Attach')
        ])
  }

  /** @param {{ pid: number, startTimeTicks: number, name: string }} process */
  async #attach ({ pid, startTimeTicks, name }) {
    this.#isAttaching = true
    setText(this.#said, `Attaching to ${name} …`)
    this.refresh()
    try {
      const { target } = await ask(`processes/${pid}/attach`, { startTimeTicks }, 'POST')
      setText(this.#said, target === null
        ? `The agent was loaded into ${name}. It has sent no frame yet.`
        : `${name} reports as ${target}.`)
    } catch (error) {
      setText(this.#said, error instanceof Refused ? `${error.message}.` : 'No answer came.')
    }
    this.#isAttaching = false
    this.refresh()
  }

  remove () {
    this.#isRemoved = true
    clearTimeout(this.#timer)
  }
}
