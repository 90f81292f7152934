import { stateSymbols } from '@memwatch/engine/text/state-symbols'

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * An element. Names beginning with "on" are listeners. `true` creates an attribute without a value,
 * and null or false omits the attribute.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, string | number | boolean | null | undefined | ((event: any) => void)>}
 *   attributes
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function h (tag, attributes, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name.slice(2), value)
    else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? '' : String(value))
    }
  }
  element.append(
    ...children
      .flat()
      .filter(child => child !== null && child !== undefined && child !== false)
      .map(child => (child instanceof Node ? child : String(child)))
  )
  return element
}

/**
 * An SVG element, without listeners.
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 * @param {...SVGElement} children
 * @returns {SVGElement}
 */
export function svg (tag, attributes, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value))
  element.append(...children)
  return element
}

/**
 * The symbol of a state, hidden from screen readers: the word of the state stands beside it.
 * @param {string} state state of a verdict or a headline
 */
export const symbolOf = state =>
  h('span', { class: `symbol ${state}`, 'aria-hidden': 'true' }, stateSymbols[state] ?? '?')

/** Last input of each element. @type {WeakMap<Element, string>} */
const filledBy = new WeakMap()

/**
 * Fills an element unless its input is unchanged, so that selection, focus and speech output stay.
 * @param {Element} element
 * @param {unknown} state all inputs of the children, as a JSON value
 * @param {() => Child | Child[]} build
 */
export function fill (element, state, build) {
  const key = JSON.stringify(state) ?? ''
  if (filledBy.get(element) === key) return
  filledBy.set(element, key)
  element.replaceChildren(
    ...[build()]
      .flat()
      .filter(child => child !== null && child !== undefined && child !== false)
      .map(child => (child instanceof Node ? child : String(child)))
  )
}

/**
 * @param {Element} element
 * @param {string} text
 */
export function setText (element, text) {
  if (element.textContent !== text) element.textContent = text
}

/** @param {string} name of a custom property of page.css */
export const colour = name =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim()

/**
 * Copies a text, even on plain HTTP, where browsers offer no clipboard.
 * @param {string} text
 * @param {HTMLElement} from element that gets the focus back
 * @returns {Promise<boolean>} false if the browser refuses
 */
export async function copy (text, from) {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    const field = h('textarea', { class: 'unseen', readonly: true })
    field.value = text
    from.after(field)
    field.select()
    const isDone = document.execCommand('copy')
    field.remove()
    from.focus()
    return isDone
  }
}
