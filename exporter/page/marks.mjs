import { formatValue } from '@memwatch/engine/text/format'

/**
 * @typedef {import('./chart.mjs').Mark} Mark
 * @typedef {import('./charts.mjs').Chart} Chart
 * @typedef {import('./history.mjs').History} History
 *
 * @typedef {object} Evidence evidence in the form of /api/v1/diagnoses
 * @property {string} signal
 * @property {number} value
 * @property {number} limit
 * @property {string} unit
 * @property {string} text
 *
 * @typedef {object} Course
 * @property {(number | null)[]} values of the evidence over time; empty if it has no series
 * @property {number} [threshold] threshold, in the unit of the values
 * @property {Mark['at']} [trend] time and value of the first and the last point
 */

/**
 * Marks over a chart: constant levels, and the thresholds and growths of the finding.
 * @param {Chart} chart
 * @param {{ history: History, values: Record<string, any>, evidence: readonly Evidence[] }} shown
 *   values: newest value of every field; evidence: of the finding
 * @returns {Mark[]}
 */
export function marksOf (chart, { history, values, evidence }) {
  /** @type {Mark[]} */
  const marks = chart.lines(values).flatMap(({ label, value, scale }) => value === undefined
    ? []
    : [{
        as: 'level',
        label: `${label} ${formatValue(value, chart.unit)}`,
        colour: '--ink',
        scale,
        at: [value]
      }])
  for (const item of evidence) {
    if (Object.hasOwn(chart.evidence, item.signal)) {
      marks.push(...marksOfEvidence(chart, item, history))
    }
  }
  // Two pieces of evidence may have the same level, which is drawn once.
  return marks.filter(({ label }, i) => marks.findIndex(other => other.label === label) === i)
}

/**
 * @param {Chart} chart
 * @param {Evidence} evidence
 * @param {History} history
 * @returns {Mark[]}
 */
function marksOfEvidence (chart, evidence, history) {
  const style = chart.evidence[evidence.signal]
  const { threshold, trend } = courseOf(chart, evidence, history)
  if (trend) {
    const label = `growth ${formatValue(evidence.value, evidence.unit)}`
    return [{ as: 'line', label, colour: '--red', at: trend }]
  }
  if (threshold === undefined) return []
  const word = style.as === 'rise' ? 'certain from' : 'threshold'
  return [{
    as: 'level',
    label: `${word} ${formatValue(threshold, evidence.unit)}`,
    colour: '--red',
    scale: style.as === 'level' ? style.scale : undefined,
    at: [threshold]
  }]
}

/**
 * Values over time for a piece of evidence, with its threshold or its growth.
 * @param {Chart} chart chart that shows the evidence
 * @param {Evidence} evidence
 * @param {History} history
 * @returns {Course}
 */
export function courseOf (chart, { signal, value, limit }, history) {
  const style = chart.evidence[signal]
  if (style.as === 'text') return { values: [] }
  if (style.as === 'level') {
    const track = chart.tracks.includes(signal) ? signal : undefined
    const read = style.read ?? (track && (row => row.last(track)))
    return { values: read ? history.map(read) : [], threshold: limit > 0 ? limit : undefined }
  }
  const values = history.map(row => row.last(style.track))
  const points = values.flatMap((y, i) => y === null ? [] : [{ time: history.times[i], y }])
  if (points.length < 2) return { values: [] }
  const [first, last] = [points[0], points[points.length - 1]]
  if (style.as === 'rise') {
    return { values, threshold: limit > value ? last.y - value + limit : undefined }
  }
  // The line has the slope in the evidence, and passes through the median of the drawn values.
  const intercept = median(points.map(({ time, y }) => y - value * (time - first.time)))
  const at = (/** @type {number} */ time) => intercept + value * (time - first.time)
  return { values, trend: [first.time, at(first.time), last.time, at(last.time)] }
}

/** @param {number[]} values */
function median (values) {
  const sorted = values.toSorted((a, b) => a - b)
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2
}
