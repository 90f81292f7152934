'use strict'

/**
 * Symbols of states, the same on the page and in a terminal: colour alone tells nothing to whoever
 * cannot see it. Keys are the states of verdicts and headlines. The browser takes this very file.
 * @type {Readonly<Record<string, string>>}
 */
const stateSymbols = Object.freeze({
  confirmed: '!',
  suspected: '~',
  undecided: '?',
  unknown: '?',
  limited: '?',
  ok: '✓'
})

module.exports = { stateSymbols }
