'use strict'

/**
 * Writes every generated file from its tables; with --check it writes nothing and fails on a
 * difference. `npm run generate`
 */

const fs = require('node:fs')
const path = require('node:path')
const { diagnoses } = require('../engine/diagnoses')
const { alertRules, recordedRules, rulesYaml } = require('./alerts/index')
const { promClientRules } = require('./alerts/prom-client-rules')
const { chartReadme } = require('./chart-readme')
const contrib = require('./contrib')
const { dashboards } = require('./dashboards')
const docs = require('./docs')
const { compatibility } = require('./compatibility')
const { architecture } = require('./import-picture')
const packages = require('./packages')
const pageBundle = require('./page-bundle')
const { report } = require('../exporter/expose/schemas')
const { createServer } = require('../exporter/expose/server')
const { Exporter } = require('../exporter/exporter')

const ROOT = path.join(__dirname, '..')
const CHART_FILES = 'deploy/helm/memwatch/files'

/** Copies for the chart, because Helm reads no file outside the chart. */
const copies = {
  [`${CHART_FILES}/rules/alerts.yaml`]: 'alerts/memwatch.alerts.yaml',
  [`${CHART_FILES}/rules/rules.yaml`]: 'alerts/memwatch.rules.yaml',
  [`${CHART_FILES}/rules/prom-client.yaml`]: 'alerts/prom-client.rules.yaml',
  ...Object.fromEntries(
    Object.keys(dashboards).map(name => [
      `${CHART_FILES}/dashboards/${name}.json`,
      `dashboards/${name}.json`
    ])
  )
}

/** @type {Record<string, () => string | Promise<string>>} contents by file */
const generated = {
  ...packages.generated,
  ...contrib.generated,
  ...pageBundle.generated,
  'ARCHITECTURE.md': architecture,
  'alerts/memwatch.alerts.yaml': () => rulesYaml(alertRules({ diagnoses }), 'npm run generate'),
  'alerts/memwatch.rules.yaml': () => rulesYaml(recordedRules(), 'npm run generate'),
  'alerts/prom-client.rules.yaml': () => rulesYaml(promClientRules(), 'npm run generate'),
  ...Object.fromEntries(
    Object.entries(dashboards).map(([name, make]) => [
      `dashboards/${name}.json`,
      () => JSON.stringify(make(), null, 2) + '\n'
    ])
  ),
  'deploy/helm/memwatch/README.md': chartReadme,
  'docs/api.md': async () => docs.api(await openApi()),
  'docs/openapi.json': async () => JSON.stringify(await openApi(), null, 2) + '\n',
  'docs/commands.md': docs.commands,
  'docs/compatibility.md': compatibility,
  'docs/metrics.md': docs.metrics,
  'docs/diagnoses.md': docs.diagnoses,
  'docs/capture-rules.md': docs.captureRules,
  'docs/deaths.md': docs.deaths,
  'docs/config.md': docs.config,
  'docs/known-bugs.md': docs.knownBugs,
  'docs/lab.md': docs.lab,
  'docs/sources.md': docs.sources,
  'docs/wire-protocol.md': docs.wireProtocol,
  'docs/report.schema.json': () => JSON.stringify(report, null, 2) + '\n'
}
for (const [copy, of] of Object.entries(copies)) generated[copy] = generated[of]

/**
 * Creates the description of the API, from an exporter that is not started.
 * @returns {Promise<any>}
 */
async function openApi () {
  const server = createServer(new Exporter({
    listen: { host: '127.0.0.1', port: 0 },
    socket: { path: 'exporter.sock' },
    compat: true,
    maxTargets: 1,
    logLevel: 'silent',
    token: 'any'
  }))
  const headers = { authorization: 'Bearer any' }
  const answer = await server.inject({ url: '/api/v1/openapi.json', headers })
  await server.close()
  return answer.json()
}

async function main () {
  const check = process.argv.includes('--check')
  let differing = 0
  for (const [name, make] of Object.entries(generated)) {
    const file = path.join(ROOT, name)
    const content = await make()
    const current = fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : ''
    if (current === content) continue
    differing++
    if (!check) fs.writeFileSync(file, content)
    console.log(`${check ? 'differs' : 'written'}: ${name}`)
  }
  if (check && differing > 0) {
    console.error('run npm run generate and commit what it writes')
    process.exitCode = 1
  }
}

if (require.main === module) main()

module.exports = { generated, ROOT }
