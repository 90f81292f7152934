'use strict'

/**
 * `npm run lint:rules`: Cloudflare's pint reads every rule beside a real Prometheus that scrapes a real exporter: series that are not
 * there, rates of gauges, joins that cannot match. It is built from alerts/pint/go.mod at first, which needs Go 1.26 and a minute;
 * therefore it is no part of `npm test`.
 */

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { spawn, spawnSync } = require('node:child_process')
const { once } = require('node:events')
const { diagnoses } = require('../exporter/diagnoses')
const { recordedRules, rulesYaml } = require('../scripts/alerts/index')
const { findTools, MISSING } = require('../scripts/system-tools')
const { ROOT } = require('../scripts/generate')
const { startExporter, eventually } = require('../test/support/exporter')
const { startPrometheus } = require('../test/support/prometheus')
const { tellRecording } = require('../test/support/recorded-agent')

const SOURCE = path.join(ROOT, 'alerts/pint')
const PINT = path.join(ROOT, '.cache/pint')
const RULES = ['alerts/memwatch.alerts.yaml', 'alerts/memwatch.rules.yaml', 'alerts/prom-client.rules.yaml']

function build () {
  if (fs.existsSync(PINT)) return
  console.log('building pint …')
  const { status, error } = spawnSync('go', ['build', '-trimpath', '-ldflags', '-s -w', '-o', PINT, 'github.com/cloudflare/pint/cmd/pint'], {
    cwd: SOURCE, stdio: 'inherit', env: { ...process.env, GOTOOLCHAIN: 'local', CGO_ENABLED: '0' }
  })
  if (status !== 0) throw new Error(`pint cannot be built${error ? `: ${error.message}` : ''}; it needs Go 1.26`)
}

async function main () {
  const tools = findTools()
  if (!tools) throw new Error(MISSING)
  build()
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-pint-'))
  /** @type {(() => unknown)[]} last started, first stopped */
  const stops = [() => fs.rmSync(folder, { recursive: true, force: true })]
  try {
    const exporter = await startExporter()
    stops.push(exporter.stop)
    // One process ill of each, so that every series of a rule is there.
    for (const [i, { id }] of diagnoses.filter(({ runbook }) => runbook).entries()) {
      const connection = await tellRecording(exporter, id, { pid: 100_000 + i })
      stops.push(() => connection.destroy())
    }
    const prometheus = await startPrometheus({ file: tools.prometheus, rules: rulesYaml(recordedRules(), 'pint'), targets: [`127.0.0.1:${exporter.port}`] })
    stops.push(prometheus.stop)
    await eventually(() => prometheus.query('fleet:memwatch_targets:count'), samples => samples.length > 0, 30_000)
    const config = path.join(folder, 'pint.hcl')
    fs.writeFileSync(config, `${fs.readFileSync(path.join(SOURCE, 'pint.hcl'), 'utf8')}\nprometheus "live" {\n  uri     = "${prometheus.url}"\n  timeout = "10s"\n}\n`)
    // Not in the way of the exporter, which runs in this process.
    const pint = spawn(PINT, ['--no-color', '--config', config, 'lint', '--min-severity=warning', '--fail-on=bug', ...RULES], { cwd: ROOT, stdio: 'inherit' })
    const [status] = await once(pint, 'close')
    process.exitCode = status ?? 1
  } finally {
    for (const stop of stops.reverse()) await stop()
  }
}

main().catch(error => {
  console.error(error)
  process.exitCode = 1
})
