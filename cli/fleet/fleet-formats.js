'use strict'

const { formatBytes, formatNumber } = require('@memwatch/engine/text/format')
const { markdownCode, markdownText } = require('@memwatch/engine/text/markdown')
const { printable } = require('@memwatch/engine/text/printable')
const { runbookOf } = require('../text/runbook')
const { wrap } = require('../text/wrap')

/**
 * Formats of the report of `memwatch fleet`. Names, versions and fixes come from the watched
 * processes, so each format escapes them.
 */

/** @typedef {import('./fleet-report').FleetReport} FleetReport */
/** @typedef {import('./fleet-report').Finding} Finding */
/** @typedef {import('./fleet-report').Workload} Workload */
/** @typedef {import('../text/terminal').Line} Line */

/** Least saving in cores that is shown. */
const LEAST_CORES = 0.01
/** Upper bound of versions named for a finding; the others are only counted. */
const MOST_VERSIONS = 4
/** First characters of a cell that a spreadsheet would evaluate as a formula. */
const FORMULA = /^[=+\-@\t\r]/
const STYLES = /** @type {Record<string, 'red' | 'yellow'>} */ ({ critical: 'red', warning: 'yellow' })

/** @param {Finding} finding */
const severityOf = ({ state, severity }) => state === 'confirmed' ? severity ?? '' : state
/** @param {Pick<Finding, 'labels' | 'workload'>} of */
const placeOf = ({ labels, workload }) => {
  const { cluster, namespace, job, service_name: _, ...others } = labels
  const more = Object.entries(others).map(([name, value]) => `${name}=${value}`)
  return [[cluster, namespace ?? job, workload].filter(Boolean).join('/'), ...more].join(' ')
}
/** @param {Finding} finding */
const countOf = ({ state, targets, suspectedTargets, ofTargets }) => {
  if (state === 'suspected') return `${suspectedTargets} of ${ofTargets}`
  return `${targets} of ${ofTargets}${suspectedTargets > 0 ? ` (+${suspectedTargets} suspected)` : ''}`
}
/** @param {number} cores */
const coresOf = cores => cores < LEAST_CORES ? '' : formatNumber(cores)
/** @param {number} bytes */
const bytesOf = bytes => bytes > 0 ? formatBytes(bytes) : ''
/**
 * @param {number | null} amount
 * @param {FleetReport} report
 */
const moneyOf = (amount, { prices }) =>
  amount === null ? '' : `${amount.toFixed(2)}${prices.currency && ` ${prices.currency}`}`
/** @param {FleetReport} report */
const isPriced = ({ totals }) => totals.savingPerMonth !== null
/** @param {{ serviceVersion: string, nodeVersion: string, targets: number }} version */
const versionOf = ({ serviceVersion, nodeVersion, targets }) =>
  `${serviceVersion || 'unknown version'} on Node.js ${nodeVersion}: ${targets}`
/** @param {Finding} finding */
const versionsOf = ({ versions }) => {
  const shown = versions.slice(0, MOST_VERSIONS).map(versionOf)
  const more = versions.length - shown.length
  return [...shown, ...more > 0 ? [`${more} more versions`] : []].join(', ')
}

/**
 * @param {FleetReport} report
 * @returns {string[]} sentences
 */
function summaryOf (report) {
  const { totals, atUnixMs, partial } = report
  const cores = `${formatNumber(totals.gcCores)} of ${formatNumber(totals.cpuCores)} cores`
  const saves = [
    bytesOf(totals.savingBytes) || '0 MiB',
    ...coresOf(totals.savingCores) ? [`${coresOf(totals.savingCores)} cores`] : [],
    ...isPriced(report) ? [`${moneyOf(totals.savingPerMonth, report)} a month`] : []
  ].join(', ')
  return [
    `${totals.findings} findings in ${totals.workloads} workloads with ${totals.targets} targets, ` +
      `${new Date(atUnixMs).toISOString()}.`,
    `RSS ${formatBytes(totals.rssBytes)}; GC pauses take ${cores}. The fixes save ${saves}.`,
    ...partial.map(reason => `Partial answer: ${reason}.`)
  ]
}

/** @param {FleetReport} report */
const changesOf = ({ workloads }) => workloads.filter(({ growth }) => growth !== null)

/**
 * @param {Finding} finding
 * @param {FleetReport} report
 * @returns {string[]} cells, without the money column if there are no prices
 */
const cellsOf = (finding, report) => [
  severityOf(finding),
  placeOf(finding),
  finding.diagnosis,
  countOf(finding),
  bytesOf(finding.savingBytes),
  coresOf(finding.savingCores),
  ...isPriced(report) ? [moneyOf(finding.savingPerMonth, report)] : []
]
/** @param {FleetReport} report */
const headsOf = report => [
  'Severity', 'Workload', 'Diagnosis', 'Targets', 'Saves RSS', 'Saves cores',
  ...isPriced(report) ? ['Saves a month'] : []
]

/**
 * Renders a table for a terminal, with versions and fix of each finding below its row.
 * @param {FleetReport} report
 * @param {{ width: number }} options
 * @returns {Line[]}
 */
function renderText (report, { width }) {
  const rows = report.findings.map(finding => cellsOf(finding, report).map(printable))
  const heads = headsOf(report)
  const widths = heads.map((head, i) =>
    rows.reduce((most, row) => Math.max(most, row[i].length), head.length))
  const lineOf = (/** @type {string[]} */ cells) =>
    cells.map((cell, i) => i < 4 ? cell.padEnd(widths[i]) : cell.padStart(widths[i])).join('  ')
      .trimEnd()
  const below = (/** @type {string} */ text) => wrap(printable(text), width, 2)
  return [
    ...summaryOf(report).flatMap(text => wrap(printable(text), width)),
    '',
    ...report.findings.length > 0 ? [{ text: lineOf(heads), style: /** @type {const} */ ('bold') }] : [],
    ...report.findings.flatMap((finding, i) => [
      { text: lineOf(rows[i]), style: STYLES[severityOf(finding)] ?? /** @type {const} */ ('bold') },
      ...finding.versions.length > 0 ? below(versionsOf(finding)) : [],
      ...finding.fix === null ? [] : below(`fix: ${finding.fix}${fixCount(finding)}`)
    ]),
    ...changesOf(report).flatMap((workload, i) => [
      ...i === 0 ? ['', { text: 'Growth by version', style: /** @type {const} */ ('bold') }] : [],
      ...wrap(printable(`${placeOf(workload)} ${workload.growth?.text}`), width)
    ])
  ]
}

/** @param {Finding} finding */
const fixCount = ({ fixTargets, targets }) =>
  fixTargets < targets ? ` (of ${fixTargets}; others differ)` : ''

/**
 * @param {FleetReport} report
 * @returns {string}
 */
function renderMarkdown (report) {
  const heads = [...headsOf(report), 'Versions', 'Fix']
  const row = (/** @type {string[]} */ cells) => `| ${cells.join(' | ')} |`
  return [
    '# Memory findings',
    '',
    ...summaryOf(report).map(markdownText),
    '',
    row(heads),
    row(heads.map((_, i) => i >= 4 && i < heads.length - 2 ? '---:' : '---')),
    ...report.findings.map(finding => row([
      ...cellsOf(finding, report).map(markdownText).with(2, markdownLink(finding)),
      markdownText(versionsOf(finding)),
      finding.fix === null ? '' : markdownCode(finding.fix) + fixCount(finding)
    ])),
    ...changesOf(report).flatMap((workload, i) => [
      ...i === 0 ? ['', '## Growth by version', ''] : [],
      `- ${markdownText(placeOf(workload))} ${markdownText(String(workload.growth?.text))}`
    ]),
    ''
  ].join('\n')
}

/** @param {Finding} finding */
const markdownLink = ({ diagnosis, runbook }) => isRunbook(runbook)
  ? `[${markdownText(diagnosis)}](${runbookOf(runbook)})`
  : markdownText(diagnosis)

/**
 * @param {string | null} name
 * @returns {name is string} false for a text that cannot be the name of an alert: a label may
 *   contain any text
 */
const isRunbook = name => name !== null && /^\w{1,64}$/.test(name)

/** @param {string} text */
const html = text => printable(text).replace(/[&<>"']/g, character =>
  `&#${character.charCodeAt(0)};`)

/**
 * Renders one HTML page without scripts, images or other files.
 * @param {FleetReport} report
 * @returns {string}
 */
function renderHtml (report) {
  const heads = [...headsOf(report), 'Versions', 'Fix']
  const cell = (/** @type {string} */ text) => `<td>${text}</td>`
  return [
    '<!doctype html>',
    '<html lang="en"><head><meta charset="utf-8"><title>Memory findings</title>',
    '<meta name="viewport" content="width=device-width">',
    '<style>body{font:14px system-ui;margin:2em;color-scheme:light dark}' +
      'table{border-collapse:collapse}td,th{padding:.3em .6em;text-align:left;' +
      'vertical-align:top;border-bottom:1px solid #8884}code{white-space:pre-wrap}</style>',
    '</head><body><h1>Memory findings</h1>',
    ...summaryOf(report).map(text => `<p>${html(text)}</p>`),
    '<table><thead>',
    `<tr>${heads.map(head => `<th>${html(head)}</th>`).join('')}</tr>`,
    '</thead><tbody>',
    ...report.findings.map(finding => `<tr>${[
      ...cellsOf(finding, report).map(html).with(2, isRunbook(finding.runbook)
        ? `<a href="${runbookOf(finding.runbook)}">${html(finding.diagnosis)}</a>`
        : html(finding.diagnosis)),
      html(versionsOf(finding)),
      finding.fix === null ? '' : `<code>${html(finding.fix)}</code>${html(fixCount(finding))}`
    ].map(cell).join('')}</tr>`),
    '</tbody></table>',
    ...changesOf(report).flatMap((workload, i) => [
      ...i === 0 ? ['<h2>Growth by version</h2>'] : [],
      `<p>${html(`${placeOf(workload)} ${workload.growth?.text}`)}</p>`
    ]),
    '</body></html>',
    ''
  ].join('\n')
}

/** Columns of the CSV. Numbers are in bytes, cores and money, without units. */
const COLUMNS = Object.freeze([
  'cluster', 'namespace', 'job', 'workload', 'diagnosis', 'state', 'severity', 'service_version',
  'node_version', 'targets', 'saving_bytes', 'saving_cores', 'saving_per_month', 'fix'
])

/**
 * Renders a row for each finding and version, for spreadsheets: RFC 4180, with plain line feeds. A
 * suspected finding is one row without versions.
 * @param {FleetReport} report
 * @returns {string}
 */
function renderCsv (report) {
  const rows = report.findings.flatMap(finding => {
    const { labels, workload, diagnosis, state, severity, fix, suspectedTargets } = finding
    const versions = finding.versions.length > 0
      ? finding.versions
      : [{ ...finding, serviceVersion: '', nodeVersion: '', targets: suspectedTargets }]
    return versions.map(version => [
      labels.cluster, labels.namespace, labels.job, workload, diagnosis, state, severity,
      version.serviceVersion, version.nodeVersion, version.targets, Math.round(version.savingBytes),
      version.savingCores, version.savingPerMonth, fix
    ])
  })
  return [COLUMNS, ...rows].map(row => row.map(csvCell).join(',')).join('\n') + '\n'
}

/** @param {string | number | null | undefined} value */
function csvCell (value) {
  if (typeof value === 'number') return String(value)
  const text = printable(value ?? '')
  const inert = FORMULA.test(text) ? `'${text}` : text
  return /[",]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert
}

module.exports = { renderText, renderMarkdown, renderHtml, renderCsv }
