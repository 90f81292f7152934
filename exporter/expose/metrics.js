'use strict'

const { compatMetrics } = require('../catalog/compat-metrics')
const { exporterMetrics } = require('../catalog/exporter-metrics')
const { formats, formatLabels, Family } = require('../catalog/exposition')
const { targetMetrics } = require('../catalog/target-metrics')
const { steadyUnixMs } = require('../clock')
const { figures, signalsOf } = require('@memwatch/engine/signals/index')
const { Turns } = require('../turns')
const { TextParts } = require('./text-parts')

/**
 * Upper bound of targets that are read between two turns of the event loop. Reading so many takes
 * some 2 ms.
 */
const LARGEST_BATCH = 10

/**
 * @typedef {import('@memwatch/engine/history/target').Target} Target
 * @typedef {import('../catalog/exposition').TextFormat} TextFormat
 * @typedef {import('../catalog/exporter-metrics').ExporterState} ExporterState
 *
 * The answer to a scrape. `length`: bytes of all parts.
 * @typedef {{ contentType: string, length: number, parts: Buffer[] }} Scrape
 */

/**
 * Text of /metrics, rendered anew from the targets and the exporter at each scrape, so it does not
 * contain targets that are no longer watched.
 *
 * @param {object} source
 * @param {() => Target[]} source.targets
 * @param {() => ExporterState} source.state
 * @param {boolean} source.compat true to add metrics under prom-client's names
 * @param {() => number} [source.now] ms
 */
function createMetrics ({ targets, state, compat, now = steadyUnixMs }) {
  const targetRows = compat ? [...targetMetrics, ...compatMetrics] : targetMetrics
  const targetFamilies = createFamilies(targetRows)
  const exporterFamilies = createFamilies(exporterMetrics)
  const readTargets = createTargetReader(now)
  /** @type {number | undefined} */
  let scrapeSeconds

  /**
   * @param {TextFormat} format
   * @returns {Promise<Scrape>}
   */
  async function render (format) {
    const began = performance.now()
    const turns = new Turns()
    const text = new TextParts()
    /**
     * @param {Family} family
     * @param {TextParts} lines
     */
    const write = (family, lines) => {
      if (lines.isEmpty) return
      text.write(text.isEmpty ? family.head : format.separator + family.head)
      text.append(lines)
    }
    const watched = targets().filter(({ frame }) => frame)
    const read = await readTargets(watched, targetFamilies(format), turns)
    for (const { family, lines } of read) write(family, lines)
    if (turns.over) await turns.next()
    const exporter = { ...state(), scrapeSeconds }
    for (const { row, family } of exporterFamilies(format)) {
      const lines = new TextParts()
      lines.write(family.lines(row.read(exporter)))
      write(family, lines)
    }
    text.write(format.end)
    const parts = text.end()
    const length = parts.reduce((sum, part) => sum + part.length, 0)
    scrapeSeconds = (performance.now() - began) / 1000
    return { contentType: format.contentType, length, parts }
  }

  return {
    /** @param {string} accept header */
    contentTypeFor: accept => chooseFormat(accept).contentType,
    text: (accept = '') => render(chooseFormat(accept))
  }
}

/**
 * Families of a metric table, created when a format is first requested.
 * @template {{ name: string, type: string, help: string }} Row
 * @param {readonly Row[]} rows
 * @returns {(format: TextFormat) => { row: Row, family: Family }[]}
 */
function createFamilies (rows) {
  /** @type {Map<TextFormat, { row: Row, family: Family }[]>} */
  const known = new Map()
  return format => {
    let families = known.get(format)
    if (families === undefined) {
      families = rows.map(row => ({ row, family: new Family(row, format) }))
      known.set(format, families)
    }
    return families
  }
}

/** @param {() => number} now ms */
function createTargetReader (now) {
  /** The first batch is one target, because code that was not compiled yet takes longer. */
  let batchSize = 1

  /**
   * Renders the lines of all targets, family by family.
   * @param {Target[]} targets that have frames
   * @param {{ row: import('../catalog/metric').TargetMetric, family: Family }[]} families
   * @param {Turns} turns
   */
  return async function readTargets (targets, families, turns) {
    const read = families.map(({ row, family }) => ({ row, family, lines: new TextParts() }))
    for (let first = 0; first < targets.length;) {
      const batch = targets.slice(first, first + batchSize).map(target => readMoment(target, now()))
      first += batch.length
      // A batch is rendered without a turn of the event loop, so that all numbers of a target are
      // of one moment.
      for (const { row, family, lines } of read) {
        const texts = batch.map(({ target, context, labels }) =>
          family.lines(row.read(target, context), labels))
        // join() creates one flat string. V8 would flatten a concatenated string later, at a higher
        // cost.
        lines.write(texts.join(''))
      }
      batchSize = turns.over ? Math.max(1, batchSize >> 1) : Math.min(2 * batchSize, LARGEST_BATCH)
      if (turns.over) await turns.next()
    }
    return read
  }
}

/**
 * Chooses between two formats by the Accept header.
 * @param {string} accept header
 */
const chooseFormat = accept => accept.includes('application/openmetrics-text')
  ? formats.openMetrics
  : formats.prometheus

/**
 * Reading of a target at one moment, for all rows of the tables.
 * @param {Target} target that has a frame
 * @param {number} nowUnixMs
 */
function readMoment (target, nowUnixMs) {
  const window = /** @type {import('@memwatch/engine/history/window').Window} */ (target.window())
  const signals = signalsOf(window)
  /** @type {import('../catalog/metric').Context} */
  const context = { nowUnixMs, window, signal: name => figures[name].read(signals) }
  const labels = formatLabels({ target: target.name, thread: target.thread })
  return { target, context, labels }
}

module.exports = { createMetrics }
