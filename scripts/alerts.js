'use strict'

/**
 * `npm run alerts -- --selector 'namespace="shop"' --dashboard-url https://grafana.example.org >
 * my.alerts.yaml`: prints the alert rules of alerts/ with other selectors, thresholds or links;
 * --recorded prints the recording rules.
 */

const { parseArgs } = require('node:util')
const { diagnoses } = require('../engine/diagnoses')
const { alertRules, recordedRules, rulesYaml } = require('./alerts/index')
const { DEFAULTS, FOR_SECONDS } = require('./alerts/rule')

const HELP = `Prints memwatch's Prometheus rules with your changes.

  --selector TEXT        additional label matchers, such as 'namespace="shop"'
  --job-selector TEXT    matcher of the exporters' scrape jobs (${DEFAULTS.jobSelector})
  --for SECONDS          time until an alert fires (${FOR_SECONDS.critical} if critical, ${FOR_SECONDS.warning} if warning, ${FOR_SECONDS.info} if info)
  --keep-firing-for SECONDS   time until an alert resolves (${DEFAULTS.keepFiringForSeconds})
  --grace SECONDS        thresholds do not apply to younger processes (${DEFAULTS.graceSeconds})
  --memory-ratio RATIO   share of the memory limit above which growth is an alert (${DEFAULTS.memoryRatio})
  --heap-ratio RATIO     share of the heap size limit above which the live heap is an alert (${DEFAULTS.heapRatio})
  --runbook-url URL      address of the folder alerts/runbooks
  --dashboard-url URL    address of Grafana (${DEFAULTS.dashboardBaseUrl})
  --recorded             print the recording rules instead of the alerts

Example:
  npm run -s alerts -- --dashboard-url https://grafana.shop.example > memwatch.alerts.yaml
`

/**
 * @param {string | undefined} text
 * @param {string} option
 * @returns {number | undefined}
 */
function positive (text, option) {
  if (text === undefined) return undefined
  const number = Number(text)
  if (!(number > 0)) throw new TypeError(`--${option}: expected a number above 0, got ${text}`)
  return number
}

function main () {
  const { values: given } = parseArgs({
    options: {
      selector: { type: 'string' },
      'job-selector': { type: 'string' },
      for: { type: 'string' },
      'keep-firing-for': { type: 'string' },
      grace: { type: 'string' },
      'memory-ratio': { type: 'string' },
      'heap-ratio': { type: 'string' },
      'runbook-url': { type: 'string' },
      'dashboard-url': { type: 'string' },
      recorded: { type: 'boolean' },
      help: { type: 'boolean' }
    }
  })
  if (given.help) return process.stdout.write(HELP)
  const options = {
    selector: given.selector,
    jobSelector: given['job-selector'],
    forSeconds: positive(given.for, 'for'),
    keepFiringForSeconds: positive(given['keep-firing-for'], 'keep-firing-for'),
    graceSeconds: positive(given.grace, 'grace'),
    memoryRatio: positive(given['memory-ratio'], 'memory-ratio'),
    heapRatio: positive(given['heap-ratio'], 'heap-ratio'),
    runbookBaseUrl: given['runbook-url'],
    dashboardBaseUrl: given['dashboard-url']
  }
  const said = Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined)
  )
  process.stdout.write(
    rulesYaml(
      given.recorded ? recordedRules(said) : alertRules({ diagnoses, ...said }),
      'npm run alerts'
    )
  )
}

try {
  main()
} catch (error) {
  process.stderr.write(`${/** @type {Error} */ (error).message}\n`)
  process.exitCode = 2
}
