/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * An element. What begins with "on" is a listener, a true attribute stands without a value, one
 * that is null or false is left out.
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

/** Last inputs of each element. @type {WeakMap<Element, string>} */
const filledBy = new WeakMap()

/**
 * Fill an element, unless it shows this already: what is selected, focused or read aloud stays.
 * @param {Element} element
 * @param {unknown} state all that the children depend on, as JSON can hold it
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
 * A button that copies a text, and says so.
 * @param {string} text
 * @param {string} what is copied, for those who hear it
 */
export function copyButton (text, what) {
  const button = h(
    'button',
    { type: 'button', class: 'copy', 'aria-label': `Copy ${what}`, onclick: copy },
    'Copy'
  )
  return button

  async function copy () {
    let done = 'Copied'
    try {
      await navigator.clipboard.writeText(text)
    } catch { // not to be had over plain HTTP from elsewhere
      const field = h('textarea', { class: 'unseen', readonly: true })
      field.value = text
      button.after(field)
      field.select()
      if (!document.execCommand('copy')) done = 'Not allowed'
      field.remove()
      button.focus()
    }
    button.textContent = done
    setTimeout(() => { button.textContent = 'Copy' }, 2000)
  }
}
