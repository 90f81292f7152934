'use strict'

const { markdownText } = require('../../engine/text/markdown')

/** @typedef {import('./cases').Run} Run */
/** @typedef {import('./cases').Leak} Leak */
/** @typedef {import('./score').Row} Row */
/** @typedef {{ run: Run, row: Row, fixed?: Row }} Entry a case, and its fixed form beside it */

/**
 * Packages whose apps retained no memory beyond a forced GC, with or without memwatch: no cases.
 */
const NOT_REPRODUCED = Object.freeze([
  'jsdom 13.2.0, documents of a DOMParser (jsdom/jsdom#2722), on Node.js 20',
  'got 9.5.0, socket timeouts and a keep-alive agent (sindresorhus/got#694), on Node.js 24'
])

/**
 * Leaks that newer versions still have, measured without memwatch, after forced GCs. The cases use
 * other versions.
 */
const NOT_FIXED = Object.freeze([
  'http-server 14.1.1 keeps the file of an aborted download open, as 0.11.1 does ' +
    '(http-party/http-server#512)',
  '@napi-rs/canvas 0.1.71 still leaks patterns; 0.1.96 does not. 0.1.96 to 1.0.0 still leak each ' +
  'canvas that is drawn onto another; 1.1.1 does not',
  'node-fetch 2.7.0: destroying an unread body does not free its socket, but reading it does',
  'Node.js 22.23.3 leaks more in AbortSignal.any() than 22.9.0 (nodejs/node#55351), but 24.21.0 ' +
  'does not'
])

/** @param {string[][]} rows */
const table = ([head, ...rows]) =>
  [head, head.map(() => '---'), ...rows].map(row => `| ${row.join(' | ')} |`).join('\n')

/** @param {number | null} limitMib */
const limitText = limitMib =>
  limitMib === null ? 'none' : limitMib < 1024 ? `${limitMib} MiB` : `${limitMib / 1024} GiB`

/**
 * @param {string} url
 * @returns {string} such as owner/name#12
 */
const threadName = url =>
  /github\.com\/([^/]+\/[^/]+)\/(?:issues|pull)\/(\d+)/.exec(url)?.slice(1).join('#') ??
  url.replace('https://', '')

/**
 * Builds docs/realworld.md.
 * @param {Run[]} runs
 * @param {Row[]} rows of results.json
 */
function realworldPage (runs, rows) {
  const rowOf = (/** @type {string} */ name, /** @type {Run['form']} */ form) =>
    rows.find(row => row.case === name && row.form === form && row.failed === null)
  const entries = runs.filter(({ form }) => form !== 'fixed').flatMap(run => {
    const row = rowOf(run.case, run.form)
    return row ? [{ run, row, fixed: rowOf(run.case, 'fixed') }] : []
  })
  const leaks = entries.filter(({ run }) => run.form === 'leaky')
  const healthy = entries.filter(({ run }) => run.form === 'healthy')
  const found = leaks.filter(({ row }) => row.right)
  const confirmed = found.filter(({ row }) => row.headline.state === 'confirmed')
  const fixed = leaks.flatMap(({ fixed }) => fixed ? [fixed] : [])
  const clean = (/** @type {Row[]} */ list) => list.filter(({ right }) => right).length
  const nameable = found.filter(({ row }) => row.suspect !== null)
  const named = nameable.filter(({ row }) => row.suspect === 'right')

  return `# Real software

<!-- Written by npm run bench:realworld -- --write; do not edit. -->
${leaks.length} published leaks, each with a public thread, ran at their leaky version: memwatch found
**${found.length}** (${confirmed.length} confirmed, ${found.length - confirmed.length} suspected). It named the culprit in **${named.length} of the ${nameable.length}** that a line of JavaScript causes.
**${clean(fixed)} of ${fixed.length}** fixed versions and **${clean(healthy.map(({ row }) => row))} of ${healthy.length}** healthy programs ran without a confirmed finding.
No rule was made for a case, and no case was omitted because of its result. The newest run of each case counts. The leaks run faster than in real apps, to be visible within minutes. The machine had two cores and other load.

${table([
  [
    'case', 'source', 'leak at', 'fixed at', 'Node.js', 'limit', 'finding',
    'suspected, confirmed after', 'suspect', 'fixed version'
  ],
  ...leaks.map(leakCells),
  ...healthy.map(healthyCells)
])}

Seconds count from the start of the process. The headline names up to three suspects. The column "suspect" is "right" if one of them is the function, file or package that leaks, and "–" if no line of JavaScript causes the leak.

## Missed

${missed(leaks)}

## Confirmed on a fixed version or a healthy program

${wrong(entries)}

## Not run

${absent(runs, rows)}

## Reported leaks that did not occur here

${NOT_REPRODUCED.map(text => `- ${text}.`).join('\n')}

## Versions that are not fixed

${NOT_FIXED.map(text => `- ${text}.`).join('\n')}

## Suspects that are wrong or absent

${list(
  found.filter(({ row }) => row.suspect === 'wrong' || row.suspect === 'none'),
  ({ row }) => row.suspects.length === 0
    ? 'no suspect'
    : row.suspects.map(markdownText).join('; ')
)}
`
}

/** @param {Entry} entry */
function leakCells ({ run, row, fixed }) {
  const { title, source } = /** @type {Leak} */ (run.of)
  const { seconds } = row
  const after = [row.suspectedSeconds, row.confirmedSeconds]
    .map(value => value === null ? '–' : `${value} s`)
  return [
    title,
    `[${threadName(source)}](${source})`,
    row.label,
    fixed ? fixed.label : '–',
    row.node,
    limitText(row.limitMib),
    findingText(row),
    row.right ? after.join(', ') : `not in ${seconds} s`,
    row.suspect ?? '–',
    fixed ? stateOfHealthy(fixed) : 'not run'
  ]
}

/** @param {Entry} entry */
function healthyCells ({ run, row }) {
  const { title } = run.of
  return [
    title, '–', '–', row.label, row.node, limitText(row.limitMib),
    findingText(row), '–', '–', stateOfHealthy(row)
  ]
}

/** @param {Row} row */
function findingText ({ headline: { state, diagnosis } }) {
  return diagnosis === null ? state : `${state}: ${diagnosis}`
}

/** @param {Row} row */
function stateOfHealthy ({ confirmed, suspected }) {
  if (confirmed.length > 0) return `**confirmed ${confirmed.join(', ')}**`
  return suspected.length > 0 ? `suspected ${suspected.join(', ')}` : 'clean'
}

/**
 * @param {Entry[]} entries
 * @param {(entry: Entry) => string} text
 */
const list = (entries, text) => entries.length === 0
  ? 'None.'
  : entries.map(entry => `- **${entry.run.case}** (${markdownText(entry.row.label)}): ` +
    `${text(entry)}.`).join('\n')

/** @param {Entry[]} leaks */
function missed (leaks) {
  return list(leaks.filter(({ row }) => !row.right), ({ run, row }) => {
    const before = row.confirmedSeconds !== null
      ? ` It was confirmed at ${row.confirmedSeconds} s and withdrawn later.`
      : row.suspectedSeconds !== null
        ? ` It was suspected at ${row.suspectedSeconds} s, but another finding was first at the ` +
          'end.'
        : ''
    const ended = row.ended === null ? '' : ` End of the process: ${row.ended}`
    return `the expected finding was ${run.expect.join(' or ')} within ${row.seconds} s.` +
      `${before} The headline at the end: “${markdownText(shorten(row.headline.text))}”${ended}`
  })
}

/** @param {Entry[]} entries */
function wrong (entries) {
  const rows = entries.flatMap(({ run, row, fixed }) => [
    ...(run.form === 'healthy' ? [{ run, row }] : []),
    ...(fixed ? [{ run, row: fixed }] : [])
  ])
  return list(rows.filter(({ row }) => !row.right), ({ row }) =>
    `${row.confirmed.join(', ')} was confirmed on the ` +
    `${row.form === 'fixed' ? 'fixed version' : 'healthy program'}. The headline at the end: ` +
    `“${markdownText(shorten(row.headline.text))}”`)
}

/**
 * @param {Run[]} runs
 * @param {Row[]} rows
 */
function absent (runs, rows) {
  const lines = runs.flatMap(run => {
    const row = rows.find(({ case: name, form }) => name === run.case && form === run.form)
    if (row && row.failed === null) return []
    return [`- **${run.case}**, ${run.form}: ${row?.failed ?? 'it has not run yet'}.`]
  })
  return lines.length === 0 ? 'None.' : lines.join('\n')
}

/** Text of a headline in a list. */
const MOST_LETTERS = 300
/** @param {string} text */
const shorten = text => text.length > MOST_LETTERS ? `${text.slice(0, MOST_LETTERS)}…` : text

module.exports = { realworldPage }
