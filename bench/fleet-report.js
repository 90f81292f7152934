'use strict'

/**
 * `npm run bench:fleet-report` measures speed and correctness of the report of `memwatch fleet` for
 * a large fleet. Exporters judge recordings of all lab apps. The bench multiplies their real series
 * to the given number of targets, serves them to a real Prometheus with the recording rules, and
 * times the command. It compares every finding with the sum of the single verdicts of the
 * exporter's API.
 *
 *   npm run bench:fleet-report -- --targets 10000
 */

const path = require('node:path')
const { execFile } = require('node:child_process')
const { promisify } = require('node:util')
const { median, max } = require('simple-statistics')
const { apps } = require('../lab')
const { recordedRules, rulesYaml } = require('../scripts/alerts/index')
const { findTools, MISSING } = require('../scripts/system-tools')
const { startExporter, eventually } = require('../test/support/exporter')
const { startPrometheus } = require('../test/support/prometheus')
const { tellRecording } = require('../test/support/recorded-agent')
const { parseOptions } = require('./options')
const { rssOf } = require('./process-reading')
const { serveMetrics } = require('./served-metrics')

const MEMWATCH = path.join(__dirname, '../cli/memwatch.js')
/** Every workload has this many processes, half of them of each version. */
const PODS = 20
const VERSIONS = ['4.2.0', '4.3.0']
const NAMESPACES = 25
/** Number of targets on one page of metrics. */
const TARGETS_EACH = 100
const SCRAPE_SECONDS = 30
const REPEATS = 5
const MOST_SECONDS = 30
/** Largest relative difference of two sums of the same numbers in another order. */
const ROUNDING = 1e-9
const HEALTHY = 'healthy-steady'
const PAUSE_RATIOS = ['gcPauseRatio', 'recentGcPauseRatio', 'externalMajorPauseRatio']

const given = parseOptions(__filename, { targets: { type: 'string', default: '10000' } })
const workloads = Math.ceil(Number(given.targets) / PODS)

/** Names of the metrics that the rules read. */
const READ = new Set(JSON.stringify(recordedRules()).match(/\bmemwatch_[a-z_]+/g))

/**
 * @typedef {{ app: string, lines: string[], verdicts: any[] }} Judged a judged recording: the
 *   series that the rules read, and the verdicts in the form of the API
 */

/**
 * @param {string} app
 * @param {number} i
 * @returns {Promise<Judged>}
 */
async function judge (app, i) {
  const exporter = await startExporter()
  const connection = await tellRecording(exporter, app, {
    pid: 100_000 + i, name: app, appVersion: '0.0.0'
  })
  try {
    const [{ verdicts }] = await (await exporter.get('/api/v1/diagnoses')).json()
    const lines = (await exporter.metrics()).split('\n').filter(line =>
      READ.has(/^\w+/.exec(line)?.[0] ?? '') && line.includes(`target="${app}"`))
    return { app, lines, verdicts }
  } finally {
    connection.destroy()
    await exporter.stop()
  }
}

/**
 * @param {Judged[]} judged
 * @returns {(index: number) => { workload: string, namespace: string, instance: string, version:
 *   string, judged: Judged }} function that returns a target of the fleet; in every other workload
 *   only the newer version has the problem
 */
const fleetOf = judged => index => {
  const number = Math.floor(index / PODS)
  const isNew = index % PODS >= PODS / 2
  const ill = judged[number % judged.length]
  return {
    workload: `shop-${number}`,
    namespace: `team-${number % NAMESPACES}`,
    instance: `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}:16369`,
    version: VERSIONS[isNew ? 1 : 0],
    judged: isNew || number % 2 === 0 ? ill : judged.find(({ app }) => app === HEALTHY) ?? ill
  }
}

/**
 * @param {ReturnType<ReturnType<typeof fleetOf>>} target
 * @param {number} nowUnixSeconds
 * @returns {{ head: string, value: number, counts: boolean }[]} its series
 */
function seriesOf ({ workload, namespace, instance, version, judged }, nowUnixSeconds) {
  const started = nowUnixSeconds - (version === VERSIONS[0] ? 2 * 86_400 : 2 * 3600)
  return judged.lines.map(line => {
    const at = line.lastIndexOf(' ')
    const name = /^\w+/.exec(line)?.[0] ?? ''
    const head = line.slice(0, at)
      .replace(`target="${judged.app}"`, `target="${workload}",namespace="${namespace}",instance="${instance}"`)
      .replace(`service_name="${judged.app}"`, `service_name="${workload}"`)
      .replace('service_version="0.0.0"', `service_version="${version}"`)
    return {
      head,
      value: name === 'memwatch_target_start_time_seconds' ? started : Number(line.slice(at + 1)),
      counts: /_(total|sum|count)$/.test(name)
    }
  })
}

/**
 * The findings of the fleet, as the sum of the verdicts of its targets.
 * @param {ReturnType<typeof fleetOf>} targetAt
 * @param {number} count
 */
function sumVerdicts (targetAt, count) {
  /** @type {Map<string, { targets: number, savingBytes: number, savingCores: number }>} */
  const findings = new Map()
  for (let index = 0; index < count; index++) {
    const { workload, namespace, judged } = targetAt(index)
    for (const { diagnosis, state, fix } of judged.verdicts) {
      if (state !== 'confirmed') continue
      const key = `${namespace}/${workload} ${diagnosis}`
      const known = findings.get(key) ?? { targets: 0, savingBytes: 0, savingCores: 0 }
      findings.set(key, known)
      known.targets++
      const savedBy = (/** @type {readonly string[]} */ names) => {
        const found = fix[0]?.predicted.find((/** @type {any} */ { signal }) => names.includes(signal))
        return found ? Math.max(0, found.from - found.to) : 0
      }
      known.savingBytes += savedBy(['rssBytes'])
      known.savingCores += savedBy(PAUSE_RATIOS)
    }
  }
  return findings
}

/**
 * @param {ReturnType<typeof sumVerdicts>} expected
 * @param {any} report
 * @returns {string[]} differences
 */
function compare (expected, report) {
  const differences = []
  const found = new Map(report.findings
    .filter((/** @type {any} */ { state }) => state === 'confirmed')
    .map((/** @type {any} */ finding) =>
      [`${finding.labels.namespace}/${finding.workload} ${finding.diagnosis}`, finding]))
  for (const key of new Set([...expected.keys(), ...found.keys()])) {
    const [single, reported] = [expected.get(key), found.get(key)]
    for (const field of /** @type {const} */ (['targets', 'savingBytes', 'savingCores'])) {
      const [a, b] = [single?.[field] ?? NaN, reported?.[field] ?? NaN]
      if (!(Math.abs(a - b) <= ROUNDING * Math.max(1, a))) {
        differences.push(`${key}: ${field} ${b}, the verdicts ${a}`)
      }
    }
  }
  return differences
}

async function main () {
  const tools = findTools()
  if (!tools) throw new Error(MISSING)
  const judged = []
  const names = apps.map(({ id }) => id)
  for (const [i, app] of names.entries()) {
    const one = await judge(app, i).catch(error => {
      console.log(`${app}: left out: ${error.message}`)
    })
    if (!one) continue
    judged.push(one)
    const confirmed = one.verdicts.filter(({ state }) => state === 'confirmed')
    console.log(`${app}: ${one.lines.length} series, confirmed: ` +
      `${confirmed.map(({ diagnosis }) => diagnosis).join(', ') || 'nothing'}`)
  }
  const targetAt = fleetOf(judged)
  const count = workloads * PODS
  const expected = sumVerdicts(targetAt, count)
  const began = Date.now() / 1000
  const text = (/** @type {number} */ page, /** @type {number} */ scrapes) => {
    const lines = []
    for (let i = 0; i < TARGETS_EACH && page * TARGETS_EACH + i < count; i++) {
      for (const { head, value, counts } of seriesOf(targetAt(page * TARGETS_EACH + i), began)) {
        // Counters grow, like real counters.
        lines.push(`${head} ${counts ? value + scrapes / 1000 : value}`)
      }
    }
    return lines.join('\n') + '\n'
  }
  const { port, close } = await serveMetrics(text)
  // The bench does not wait for the interval of the rules of versions.
  const groups = recordedRules().groups.map(({ interval, ...group }) => group)
  const prometheus = await startPrometheus({
    file: tools.prometheus,
    rules: rulesYaml({ groups }, 'a bench'),
    jobs: Array.from({ length: Math.ceil(count / TARGETS_EACH) }, (_, i) => ({
      target: `127.0.0.1:${port}`, path: `/e${i}/metrics`, labels: {}
    })),
    job: 'memwatch',
    intervalSeconds: SCRAPE_SECONDS,
    honorLabels: true
  })
  try {
    console.log(`${count} targets in ${workloads} workloads, ${expected.size} findings to expect …`)
    const complete = [
      ['sum(workload:memwatch_targets:count)', count],
      ['count(workload:memwatch_gc_pause_seconds:rate5m)', workloads],
      ['count(workload:memwatch_live_heap_growth_bytes_per_second:previous)', 1]
    ]
    for (const [query, least] of complete) {
      await eventually(
        () => prometheus.query(String(query)).catch(() => []),
        ([sample]) => Number(sample?.value[1] ?? 0) >= Number(least),
        600_000
      )
    }
    const rules = await (await fetch(`${prometheus.url}/api/v1/rules`)).json()
    for (const { name, evaluationTime } of rules.data.groups) {
      console.log(`${name}: evaluated in ${evaluationTime.toFixed(2)} s`)
    }
    const { data } = await (await fetch(`${prometheus.url}/api/v1/status/tsdb`)).json()
    const rss = rssOf(/** @type {number} */ (prometheus.pid)) / 2 ** 30
    console.log(`Prometheus holds ${data.headStats.numSeries} series in ${rss.toFixed(2)} GiB`)
    const seconds = []
    let report
    for (let i = 0; i < REPEATS; i++) {
      const from = performance.now()
      const { stdout } = await promisify(execFile)(
        process.execPath,
        [MEMWATCH, 'fleet', '--prometheus', prometheus.url, '--format', 'json'],
        { maxBuffer: 2 ** 28 }
      )
      seconds.push((performance.now() - from) / 1000)
      report = JSON.parse(stdout)
    }
    const differences = compare(expected, report)
    for (const difference of differences.slice(0, 20)) console.log(`DIFFERS ${difference}`)
    const grown = report.workloads.filter((/** @type {any} */ { growth }) => growth)
    console.log(`${grown.length} workloads grow otherwise since a version: ` +
      `${grown[0]?.growth.text ?? 'none'}`)
    console.log(
      `report: median ${median(seconds).toFixed(2)} s, longest ${max(seconds).toFixed(2)} s; ` +
        `${report.totals.targets} targets, ${report.totals.findings} findings, ` +
          `${report.partial.length} partial; ${differences.length} differences from the sum of ` +
            `${expected.size} single findings`
    )
    const isRight = differences.length === 0 && report.totals.targets === count &&
      report.partial.length === 0 && max(seconds) <= MOST_SECONDS
    if (!isRight) process.exitCode = 1
  } finally {
    await prometheus.stop()
    close()
  }
}

main()
