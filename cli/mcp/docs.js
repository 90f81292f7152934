'use strict'

const { diagnoses } = require('@memwatch/engine/diagnoses/index')
const { tracks } = require('@memwatch/engine/history/tracks')
const { knownBugs } = require('@memwatch/engine/known-bugs/index')
const { parts } = require('@memwatch/engine/memory/parts')
const { figures, signals: allSignals } = require('@memwatch/engine/signals/index')
const { kinds } = require('@memwatch/exporter/captures/kinds')
const { reasons } = require('@memwatch/exporter/deaths/reasons')
const { text } = require('@memwatch/engine/text/json-schema')
const { runbookOf } = require('../text/runbook')
const { argumentsOf } = require('./define-tool')

/** @typedef {import('./define-tool').Tool} Tool */
/** @typedef {{ kind: string, id: string, title: string, [detail: string]: unknown }} Entry */

const MOST_ENTRIES = 5
const MOST_SIGNALS = 40

/**
 * Explanations from memwatch's own tables: diagnoses, known bugs, causes of death, parts of RSS and
 * kinds of captures.
 * @returns {Entry[]}
 */
const entries = () => [
  ...diagnoses.map(diagnosis => ({
    kind: 'diagnosis',
    id: diagnosis.id,
    title: diagnosis.title,
    severity: diagnosis.opportunity
      ? 'an opportunity: a saving in a healthy process'
      : `${diagnosis.severity} at most`,
    symptoms: diagnosis.explains,
    signals: [...diagnosis.requires, ...diagnosis.uses]
      .map(name => `${name}: ${allSignals[name].help}`),
    limits: diagnosis.limits,
    runbook: diagnosis.runbook === undefined ? null : runbookOf(diagnosis.runbook)
  })),
  ...knownBugs.map(({ kind, suspects, ...bug }) => ({ ...bug, kind: `known ${kind}` })),
  ...Object.entries(reasons).map(([id, { title, known }]) =>
    ({ kind: 'cause of death', id, title, evidence: known })),
  ...Object.entries(parts).map(([id, { title, help }]) => ({ kind: 'part of RSS', id, title, help })),
  ...Object.entries(kinds).map(([id, { title, help }]) => ({ kind: 'capture', id, title, help }))
]

/**
 * @param {string} query
 * @returns {string[]}
 */
const wordsOf = query => query.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(word => word !== '')

/** Weight of a word in an id or title, compared with a word in a text. */
const TITLE_WEIGHT = 4

/**
 * @param {Entry} entry
 * @param {string[]} words in lower case
 */
function scoreOf (entry, words) {
  const title = `${entry.id} ${entry.title}`.toLowerCase()
  const all = JSON.stringify(entry).toLowerCase()
  return words.reduce((sum, word) =>
    sum + TITLE_WEIGHT * Number(title.includes(word)) + Number(all.includes(word)), 0)
}

/** @type {Tool} */
const docs = {
  name: 'docs',
  title: 'What a diagnosis, bug, cause of death or part of RSS means',
  description:
    'Searches memwatch’s own tables: diagnoses with their signals, limits and runbooks; known ' +
    'memory bugs of Node.js and packages; causes of death; parts of RSS; kinds of captures.',
  input: argumentsOf(
    { query: { ...text, description: 'words, such as malloc fragmentation' } }, ['query']
  ),
  most: { signals: 12 },
  async answer ({ query }) {
    const words = wordsOf(query)
    const found = entries()
      .map(entry => ({ entry, score: scoreOf(entry, words) }))
      .filter(({ score }) => score > 0)
      .sort((a, b) => b.score - a.score)
    return {
      entries: found.slice(0, MOST_ENTRIES).map(({ entry }) => entry),
      ...found.length === 0 && {
        none: 'no entry contains these ' +
          'words', diagnoses: diagnoses.map(({ id, title }) => `${id}: ${title}`)
      }
    }
  }
}

/** @type {Tool} */
const signals = {
  name: 'signals',
  title: 'Names, units and meanings of the numbers',
  description:
    'Lists the signals of evidence, with unit and meaning, and the tracks of the tool series. ' +
    'Words of query filter both lists: heap, gc, malloc, loop, sockets.',
  input: argumentsOf({ query: text }),
  most: { signals: MOST_SIGNALS, tracks: Object.keys(tracks).length },
  async answer ({ query = '' }) {
    const words = wordsOf(query)
    const isAsked = (/** @type {string} */ all) =>
      words.every(word => all.toLowerCase().includes(word))
    return {
      signals: Object.entries(figures)
        .map(([name, { unit, help }]) => `${name} (${unit}): ${help}`).filter(isAsked),
      tracks: Object.entries(tracks)
        .map(([name, { unit, counter }]) => `${name} (${unit}${counter ? ', a counter' : ''})`)
        .filter(isAsked)
    }
  }
}

module.exports = { docs, signals }
