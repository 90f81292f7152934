'use strict'

const { Command, Option } = require('commander')
const { fleetReport } = require('./fleet/fleet-report')
const { renderCsv, renderHtml, renderMarkdown, renderText } = require('./fleet/fleet-formats')
const { SourceError } = require('./sources/define-source')
const { innerOf } = require('./sources/prometheus')
const { PrometheusApi } = require('./sources/prometheus-api')
const { out, err } = require('./program/output')
const { prometheusTokenOption, readPrometheusToken } = require('./program/token-file')
const { UsageError, readSeconds } = require('./program/usage-error')

/** Width of wrapped lines if the output does not report its own. */
const WIDTH = 100
const FORMATS = ['text', 'markdown', 'html', 'json', 'csv']

const command = new Command('fleet')
  .description(
    'Report the findings of a fleet by workload, worst first, with the savings of each fix, from ' +
      'recorded series in Prometheus.'
  )
  .requiredOption('--prometheus <URL>', 'Prometheus, Thanos or Mimir with the recording rules')
  .option('--selector <LABELS>', 'labels of the workloads, such as \'{namespace="shop"}\'', '{}')
  .addOption(new Option(
    '--format <FORMAT>',
    'format of the report (default: text on a terminal, otherwise markdown)'
  ).choices(FORMATS))
  .option('--price-gib <PRICE>', 'price of a GiB of memory a month (default: none)')
  .option('--price-core <PRICE>', 'price of a core a month (default: none)')
  .option('--currency <TEXT>', 'unit of the prices, such as EUR (default: none)')
  .addOption(prometheusTokenOption())
  .option('--tenant <ID>', 'tenant of Mimir, sent as X-Scope-OrgID')
  .option('--timeout <TIME>', 'time limit of each answer, such as 30s', '30s')
  .allowExcessArguments(false)
  .addHelpText(
    'after',
    `
Prometheus must evaluate alerts/memwatch.rules.yaml: the report reads only series that these rules
record. All processes of a workload with the same diagnosis are one finding. A saving is the sum of
the predictions of each verdict's first fix. The report shows money only if a price is given.

Exit status: 0; 2 when the Prometheus cannot be reached, refuses, or lacks the recorded series.

Examples:
  $ memwatch fleet --prometheus http://localhost:9090
  $ memwatch fleet --prometheus http://localhost:9090 --selector '{namespace="shop"}'
  $ memwatch fleet --prometheus https://mimir.example.org/prometheus --tenant shop \\
      --prometheus-token-file token --format html > fleet.html
  $ memwatch fleet --prometheus http://localhost:9090 --price-gib 4.5 --price-core 30 \\
      --currency EUR --format json | jq '.totals.savingPerMonth'`
  )
  .action(async given => {
    await fleet(given)
  })

/**
 * @typedef {object} FleetOptions options in the form of commander
 * @property {string} prometheus
 * @property {string} selector
 * @property {string} [format]
 * @property {string} [priceGib]
 * @property {string} [priceCore]
 * @property {string} [currency]
 * @property {string} [prometheusTokenFile]
 * @property {string} [tenant]
 * @property {string} timeout
 */

/** @param {FleetOptions} given */
async function fleet (given) {
  const prices = {
    gibPerMonth: readPrice('--price-gib', given.priceGib),
    corePerMonth: readPrice('--price-core', given.priceCore),
    currency: given.currency ?? ''
  }
  const timeoutMs = 1000 * readSeconds('--timeout', given.timeout)
  let report
  try {
    const api = new PrometheusApi(given.prometheus, {
      token: readPrometheusToken(given.prometheusTokenFile),
      tenant: given.tenant,
      timeoutMs
    })
    const matchers = innerOf(given.selector)
    report = await fleetReport(api, { matchers, prices, nowUnixMs: Date.now() })
  } catch (error) {
    throw error instanceof SourceError ? new UsageError(error.message) : error
  }
  print(report, given.format ?? (out.isTerminal ? 'text' : 'markdown'))
}

/**
 * @param {import('./fleet/fleet-report').FleetReport} report
 * @param {string} format
 */
function print (report, format) {
  if (format === 'json') out.json(report, 2)
  else if (format === 'text') out.say(...renderText(report, { width: out.columns || WIDTH }))
  else if (format === 'html') out.text(renderHtml(report))
  else if (format === 'markdown') out.text(renderMarkdown(report))
  else {
    out.text(renderCsv(report))
    // These sentences are printed separately, because the table has no place for them.
    for (const reason of report.partial) err.say(`memwatch: partial answer: ${reason}`)
  }
}

/**
 * @param {string} option
 * @param {string} [text]
 * @returns {number | null}
 * @throws {UsageError}
 */
function readPrice (option, text) {
  if (text === undefined) return null
  const price = Number(text)
  if (text.trim() === '' || !(price >= 0 && price < Infinity)) {
    throw new UsageError(`${option}: expected a price such as 4.5, got ${JSON.stringify(text)}`)
  }
  return price
}

module.exports = { command }
