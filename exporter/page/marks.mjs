import { formatValue } from './format.mjs'

/**
 * @typedef {import('./chart.mjs').Mark} Mark
 * @typedef {object} Shown
 * @property {import('./history.mjs').History} history
 * @property {Record<string, any>} values the newest of every field
 * @property {any[]} verdicts
 * @property {number} startedAtUnixMs of the process
 */

/**
 * Marks over a chart: constant levels, and the evidence of findings – where its limit is, the
 * growth that was judged, since when.
 * @param {import('./charts.mjs').Chart} chart
 * @param {Shown} shown
 * @returns {{ marks: Mark[], evidence: string[] }} evidence: its sentences
 */
export function marksOf (chart, { history, values, verdicts, startedAtUnixMs }) {
  /** @type {Mark[]} */
  const marks = chart
    .lines(values)
    .flatMap(({ label, value, scale }) =>
      value === undefined
        ? []
        : [
            {
              as: 'level',
              label: `${label} ${formatValue(value, chart.unit)}`,
              colour: '--ink',
              scale,
              at: [value]
            }
          ]
    )
  /** @type {string[]} */
  const sentences = []
  for (const { state, evidence, confirmedAfterSeconds, diagnosis } of verdicts) {
    if (state !== 'confirmed' && state !== 'suspected') continue
    const here = evidence.filter((/** @type {any} */ { signal }) => Object.hasOwn(chart.evidence, signal))
    for (const { signal, value, limit, unit, text } of here) {
      sentences.push(text)
      marks.push(...drawn(chart.evidence[signal], { signal, value, limit, unit, history }))
    }
    if (here.length > 0 && confirmedAfterSeconds !== null) {
      marks.push({
        as: 'moment',
        label: `${diagnosis} confirmed`,
        colour: '--red',
        at: [startedAtUnixMs / 1000 + confirmedAfterSeconds]
      })
    }
  }
  return { marks: withoutDoubles(marks), evidence: [...new Set(sentences)] }
}

/**
 * @param {import('./charts.mjs').EvidenceStyle} style
 * @param {{ signal: string, value: number, limit: number, unit: string, history:
 *   import('./history.mjs').History }} evidence
 * @returns {Mark[]}
 */
function drawn (style, { signal, value, limit, unit, history }) {
  if (style.as === 'level') {
    return limit > 0
      ? [
          {
            as: 'level',
            label: `${signal}: limit ${formatValue(limit, unit)}`,
            colour: '--red',
            scale: style.scale,
            at: [limit]
          }
        ]
      : []
  }
  if (style.as === 'text') return []
  const points = history
    .map((row, i) => ({ time: history.times[i], value: row.last(style.track) }))
    .filter(point => point.value !== null)
  if (points.length < 2) return []
  const [first, last] = [points[0], points[points.length - 1]]
  if (style.as === 'rise') {
    const level = Number(last.value) - value + limit
    return limit > value
      ? [
          {
            as: 'level',
            label: `${style.track}: certain from ${formatValue(level, unit)}`,
            colour: '--red',
            at: [level]
          }
        ]
      : []
  }
  // The slope is the one that was judged; it goes through the middle of what is drawn.
  const intercept = median(
    points.map(({ time, value: y }) => Number(y) - value * (time - first.time))
  )
  const at = (/** @type {number} */ time) => intercept + value * (time - first.time)
  return [
    {
      as: 'line',
      label: `${style.track}: ${formatValue(value, unit)}`,
      colour: '--red',
      at: [first.time, at(first.time), last.time, at(last.time)]
    }
  ]
}

/** @param {number[]} values */
function median (values) {
  const sorted = values.toSorted((a, b) => a - b)
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2
}

/** Two verdicts may rest on the same level: it is drawn once. @param {Mark[]} marks */
const withoutDoubles = marks =>
  marks.filter(({ label }, i) => marks.findIndex(other => other.label === label) === i)
