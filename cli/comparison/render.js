'use strict'

const { formatRatio, formatValue } = require('@memwatch/engine/text/format')
const { pasteLine } = require('@memwatch/engine/fixes/paste-line')
const { effectOf } = require('@memwatch/engine/verdicts/outcome')

/** Largest ratio of lengths of comparable runs. */
const LENGTH_TOLERANCE = 0.1

/**
 * Renders a comparison for a terminal: the table, predictions, and verdicts that appeared or
 * disappeared.
 * @param {import('./compare').Comparison} comparison
 * @returns {import('../text/terminal').Line[]}
 */
function renderComparison ({ before, after, rows, fix, verdicts }) {
  const times = Math.max(before.runs.length, after.runs.length)
  /** @type {import('../text/terminal').Line[]} */
  const lines = [...notesOf('before', before), ...notesOf('after', after)]
  const table = [
    ['', 'before', 'after', 'change'],
    ...rows.map(row => [
      row.title,
      spread(row.before, row.unit, before.runs.length),
      spread(row.after, row.unit, after.runs.length),
      changeOf(row)
    ])
  ].map(row => (after.runs.length > 0 ? row : row.slice(0, 2)))
  const widths = [0, 1, 2].map(
    column => Math.max(...table.map(row => (row[column] ?? '').length)) + 2
  )
  lines.push(...table.map((row, i) => {
    const text =
      `  ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('')}`.trimEnd()
    return i === 0 ? { text, style: /** @type {const} */ ('bold') } : text
  }))
  if (after.runs.length === 0) return lines
  if (times > 1) {
    lines.push(
      `  Medians of ${before.runs.length} and ${after.runs.length} runs, with minimum and maximum.`
    )
  } else lines.push('  One run each: the table cannot separate the effect from noise.')
  if (
    Math.abs(rows.find(({ figure }) => figure === 'watchedSeconds')?.changeRatio ?? 0) >
    LENGTH_TOLERANCE
  ) {
    lines.push(
      '  The runs differ in length: do not compare totals (CPU, sum of pauses, events, work).'
    )
  }
  if (fix) lines.push(...renderFix(fix))
  for (const { diagnosis, change, before: had, after: has } of verdicts) {
    const words = {
      gone: `has disappeared (confirmed in ${had} of ${before.runs.length} runs before, and in ` +
        'none after)',
      came: `is new (in ${has} of ${after.runs.length} runs after)`,
      stayed: `remains (in ${had} of ${before.runs.length} runs before, ${has} of ` +
        `${after.runs.length} after)`
    }
    lines.push({
      text: `  ${diagnosis} ${words[change]}`,
      style: change === 'gone' ? 'green' : 'yellow'
    })
  }
  if (verdicts.length === 0) lines.push('  Nothing is confirmed, before or after.')
  return lines
}

/** Largest error of an effect that is as predicted, as a share of the predicted effect. */
const MOST_ERROR = 0.1

/** @param {NonNullable<import('./compare').Comparison['fix']>} fix */
function renderFix ({ diagnosis, title, change, applied, outcomes }) {
  const paste = pasteLine({ title, change, predicted: [], risk: '' })
  const seen =
    applied === false
      ? '; NOT in effect in the runs after'
      : applied === null
        ? '; memwatch cannot see whether it was applied'
        : ''
  return [
    `  ${diagnosis === null ? 'Tried' : `For ${diagnosis}`}: ` +
      `${title}${paste === title ? '' : ` (${paste})`}${seen}`,
    ...outcomes.map(outcome => {
      const { name, unit, from, to, measured } = outcome
      return `    predicted ${name} from ${formatValue(from, unit)} to ${formatValue(to, unit)}, ` +
        `measured ${formatValue(measured, unit)}: ${describeEffect(outcome)}`
    })
  ]
}

/**
 * Describes the measured effect as a share of the predicted effect.
 * @param {import('@memwatch/engine/verdicts/outcome').Outcome} outcome
 */
function describeEffect (outcome) {
  const effect = effectOf(outcome)
  if (effect === null) return outcome.good ? 'as predicted' : 'no change was predicted'
  if (Math.abs(effect - 1) <= MOST_ERROR) return 'as predicted'
  return effect <= 0 ? 'no such effect' : `${formatRatio(effect)} of the predicted effect`
}

/**
 * Notes on a side, printed before its numbers.
 * @param {string} name
 * @param {import('./compare').Side} side
 */
function notesOf (name, { runs }) {
  return runs.flatMap(({ recording, target, cut, exit }, i) => {
    const which = `${name}${runs.length > 1 ? ` ${i + 1}` : ''}`
    return [
      ...(target === null ? [`  ${which}: no Node.js process reported (${recording})`] : []),
      ...(cut ? [`  ${which}: the recording breaks off`] : []),
      ...(exit && (exit.code ?? 0) > 0 ? [`  ${which}: ended with status ${exit.code}`] : []),
      ...(exit?.signal && exit.signal !== 'SIGTERM' ? [`  ${which}: ended by ${exit.signal}`] : [])
    ]
  })
}

/**
 * Text with median, minimum and maximum, and with the number of runs if some lack the value.
 * @param {import('./spread').Spread | null} of
 * @param {string} unit
 * @param {number} runs
 */
function spread (of, unit, runs) {
  if (!of) return '–'
  const [least, middle, most] = [of.min, of.median, of.max].map(value => figure(value, unit))
  const some = of.values.length < runs ? `in ${of.values.length} of ${runs}` : ''
  const notes = [least === most ? '' : `${least} – ${most}`, some].filter(Boolean).join(', ')
  return notes ? `${middle} (${notes})` : middle
}

/**
 * Formats a figure; less than a second is shown in milliseconds.
 * @param {number} value
 * @param {string} unit
 */
const figure = (value, unit) =>
  unit === 'seconds' && value !== 0 && Math.abs(value) < 1
    ? `${Number((value * 1000).toPrecision(value < 0.1 ? 2 : 3))} ms`
    : formatValue(value, unit)

/** @param {import('./compare').Row} row */
function changeOf ({ before, after, changeRatio, beyondNoise }) {
  if (!before || !after || before.median === after.median) return ''
  const share = formatRatio(Math.abs(changeRatio ?? 0))
  const percent =
    changeRatio === null ? '' : share === '0 %' ? '0 %' : `${changeRatio > 0 ? '+' : '−'}${share}`
  return beyondNoise === false ? `${percent}${percent && ', '}no difference beyond noise` : percent
}

module.exports = { renderComparison, spread }
