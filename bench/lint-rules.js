'use strict'

/**
 * `npm run lint:rules` runs Cloudflare's pint on every rule, beside a real Prometheus that scrapes
 * a real exporter. pint finds missing series, rates of gauges, and joins that cannot match. The
 * first run builds pint from alerts/pint/go.mod, with Go 1.26, the Go module proxy and a minute of
 * time. `npm test` runs this check if Go is available. The check ends with 4 if it cannot run.
 */

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { spawn, spawnSync } = require('node:child_process')
const { once } = require('node:events')
const { diagnoses } = require('../engine/diagnoses')
const { recordedRules, rulesYaml } = require('../scripts/alerts/index')
const { findTools, MISSING } = require('../scripts/system-tools')
const { ROOT } = require('../scripts/generate')
const { startExporter, eventually } = require('../test/support/exporter')
const { startPrometheus } = require('../test/support/prometheus')
const { hello, frame, line, MIB } = require('../test/support/frames')
const { tellRecording } = require('../test/support/recorded-agent')

const SOURCE = path.join(ROOT, 'alerts/pint')
const PINT = path.join(ROOT, '.cache/pint')
const RULES = [
  'alerts/memwatch.alerts.yaml',
  'alerts/memwatch.rules.yaml',
  'alerts/prom-client.rules.yaml'
]

const HOUR_MS = 3_600_000
/** Time limit for a module proxy that does not answer. */
const BUILD_TIMEOUT_MS = 420_000
/** Recordings of two versions of an app whose growth the rules compare, the older one first. */
const VERSIONS = ['native-memory-leak', 'js-heap-leak']
/** Exit status if the machine lacks a tool. */
const CANNOT_RUN = 4

function build () {
  if (fs.existsSync(PINT)) return
  console.log('building pint …')
  const { status, error } = spawnSync(
    'go',
    ['build', '-trimpath', '-ldflags', '-s -w', '-o', PINT, 'github.com/cloudflare/pint/cmd/pint'],
    {
      cwd: SOURCE,
      stdio: 'inherit',
      timeout: BUILD_TIMEOUT_MS,
      env: { ...process.env, GOTOOLCHAIN: 'local', CGO_ENABLED: '0' }
    }
  )
  if (status === 0) return
  console.log(
    `pint cannot be built${error ? `: ${error.message}` : ''}; it needs Go 1.26 and the Go ` +
      'module proxy'
  )
  process.exit(CANNOT_RUN)
}

/**
 * Recording rules without their intervals. Prometheus first evaluates a group at a random moment
 * of its interval, so that pint would see the series of some groups only in some runs.
 */
const frequentRules = () => ({
  groups: recordedRules().groups.map(({ name, rules }) => ({ name, rules }))
})

async function main () {
  const tools = findTools()
  if (!tools) {
    console.log(MISSING)
    process.exit(CANNOT_RUN)
  }
  build()
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-pint-'))
  /** @type {(() => unknown)[]} last started, first stopped */
  const stops = [() => fs.rmSync(folder, { recursive: true, force: true })]
  try {
    const exporter = await startExporter()
    stops.push(exporter.stop)
    // One process with each problem, so that all series of the rules exist.
    for (const [i, { id }] of diagnoses.filter(({ runbook }) => runbook).entries()) {
      const connection = await tellRecording(exporter, id, { pid: 100_000 + i })
      stops.push(() => connection.destroy())
    }
    // Two versions of one app that still run, old enough for their growth to be compared.
    for (const [i, recording] of VERSIONS.entries()) {
      const connection = await tellRecording(
        exporter,
        recording,
        {
          pid: 150_000 + i,
          name: 'versions',
          appVersion: `1.${i}.0`,
          startedAtUnixMs: Date.now() - (VERSIONS.length + 1 - i) * HOUR_MS
        },
        { share: 0.5 }
      )
      stops.push(() => connection.destroy())
    }
    // A process killed for memory, and a process stopped by SIGTERM.
    for (const [name, pid] of /** @type {const} */ ([['killed', 200_000], ['stopped', 200_001]])) {
      const dying = await exporter.connect()
      const values = { rssBytes: 500 * MIB, containerLimitBytes: 512 * MIB }
      dying.write([hello({ pid, name }), frame({ values })].map(message => line(message) + '\n').join(''))
      await eventually(
        () => exporter.exporter.targets.find(target => target.name === name && target.frame),
        Boolean
      )
      if (name === 'stopped') exporter.exporter.exited(pid, { code: null, signal: 'SIGTERM' })
      dying.destroy()
    }
    await eventually(
      () => exporter.exporter.deaths.map(({ reason }) => reason).sort().join(),
      reasons => reasons === 'killed,oom_kill'
    )
    const prometheus = await startPrometheus({
      file: tools.prometheus,
      rules: rulesYaml(frequentRules(), 'pint'),
      targets: [`127.0.0.1:${exporter.port}`],
      labels: { cluster: 'pint', namespace: 'pint' }
    })
    stops.push(prometheus.stop)
    for (const series of [
      'memwatch_target_last_exit_timestamp_seconds',
      ...recordedRules().groups.flatMap(({ rules }) => rules.map(({ record }) => record))
    ]) {
      await eventually(
        () => prometheus.query(series),
        samples => samples.length > 0,
        30_000
      )
    }
    const config = path.join(folder, 'pint.hcl')
    fs.writeFileSync(
      config,
      `${fs.readFileSync(path.join(SOURCE, 'pint.hcl'), 'utf8')}\nprometheus "live" {\n  uri    ` +
        ` = "${prometheus.url}"\n  timeout = "10s"\n}\n`
    )
    // pint runs asynchronously, because the exporter runs in this process and must not be blocked.
    const pint = spawn(
      PINT,
      [
        '--no-color',
        '--config',
        config,
        'lint',
        '--min-severity=warning',
        '--fail-on=bug',
        ...RULES
      ],
      { cwd: ROOT, stdio: 'inherit' }
    )
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
