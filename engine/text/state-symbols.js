'use strict'

/**
 * Symbols of states, the same on the page and in a terminal: colour alone is invisible to some
 * readers. Keys are the states of verdicts and headlines. The browser loads this file unchanged.
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
