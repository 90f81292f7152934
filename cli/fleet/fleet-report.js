'use strict'

const { diagnoses } = require('@memwatch/engine/diagnoses/index')
const { formatNumber } = require('@memwatch/engine/text/format')
const { SourceError } = require('../sources/define-source')

/**
 * The report of `memwatch fleet`: findings by workload, from the series that the recording rules of
 * alerts/memwatch.rules.yaml write. It needs one query for each series. The number of results
 * depends on the number of workloads, versions and diagnoses, not on the number of processes.
 */

const MIB = 2 ** 20
const GIB = 2 ** 30

/** File with the recording rules of RECORDED. */
const RULES_FILE = 'alerts/memwatch.rules.yaml'

/** Recorded series by the part of the report that uses them. */
const RECORDED = Object.freeze({
  targets: 'workload:memwatch_targets:count',
  rssBytes: 'workload:memwatch_rss_bytes:sum',
  cpuCores: 'workload:memwatch_process_cpu_seconds:rate5m',
  gcCores: 'workload:memwatch_gc_pause_seconds:rate5m',
  verdicts: 'workload:memwatch_verdicts:count',
  suspicions: 'workload:memwatch_suspicions:count',
  savingBytes: 'workload:memwatch_verdict_saving_bytes:sum',
  savingCores: 'workload:memwatch_verdict_saving_cores:sum',
  fixes: 'workload:memwatch_verdict_fixes:topk',
  starts: 'workload:memwatch_verdict_start_timestamp_seconds:min',
  growthSince: 'workload:memwatch_live_heap_growth_bytes_per_second:since',
  growthBefore: 'workload:memwatch_live_heap_growth_bytes_per_second:previous'
})

/** Labels that divide a workload; all other labels identify it. */
const DIVIDING = new Set([
  '__name__', 'service_version', 'node_version', 'previous_version', 'diagnosis', 'severity', 'fix',
  'runbook'
])
/** Severities, worst first; a suspected finding has none. */
const SEVERITIES = ['critical', 'warning', 'info']

/**
 * @typedef {{ metric: Record<string, string>, value: number }} Sample
 * @typedef {Record<keyof typeof RECORDED, Sample[]>} Recorded
 *
 * @typedef {object} Prices prices per month; null if unknown
 * @property {number | null} gibPerMonth price of a GiB of memory per month
 * @property {number | null} corePerMonth price of a core per month
 * @property {string} currency
 *
 * @typedef {object} Saving sums of the effects predicted for the first fix of each verdict
 * @property {number} savingBytes saved RSS
 * @property {number} savingCores saved CPU time of GC pauses, in cores
 * @property {number | null} savingPerMonth saved money; null without a price
 *
 * @typedef {{ serviceVersion: string, nodeVersion: string, targets: number } & Saving} FindingVersion
 *   '' for an unknown version of the app
 *
 * @typedef {object} FindingFacts
 * @property {string} workload name of the app
 * @property {Record<string, string>} labels labels of the workload: cluster, namespace, job,
 *   service_name
 * @property {string} diagnosis
 * @property {string} title
 * @property {'confirmed' | 'suspected'} state
 * @property {string | null} severity the worst severity; null for a suspected finding
 * @property {number} targets number of targets with the confirmed verdict
 * @property {number} suspectedTargets
 * @property {number} ofTargets number of the workload's targets that are up
 * @property {number | null} sinceUnixMs first confirmation
 * @property {string | null} fix text that most targets received
 * @property {number} fixTargets number of targets with this text
 * @property {string | null} runbook name of its alert
 * @property {FindingVersion[]} versions most targets first
 * @typedef {FindingFacts & Saving} Finding
 *
 * @typedef {object} GrowthChange
 * @property {string} version
 * @property {string} previousVersion
 * @property {number} bytesPerSecond growth of the live heap per second: median over processes older
 *   than an hour
 * @property {number} previousBytesPerSecond
 * @property {string} text
 *
 * @typedef {object} WorkloadFacts
 * @property {string} workload
 * @property {Record<string, string>} labels
 * @property {number} targets number of targets that are up
 * @property {number} findings
 * @property {number} rssBytes
 * @property {number} cpuCores CPU time in use, in cores
 * @property {number} gcCores cores used in GC pauses
 * @property {{ serviceVersion: string, nodeVersion: string, targets: number, rssBytes: number }[]}
 *   versions most targets first
 * @property {GrowthChange | null} growth null if the newest version grows like the previous one
 * @typedef {WorkloadFacts & Saving} Workload
 *
 * @typedef {object} FleetReport
 * @property {1} schema
 * @property {string} prometheus URL
 * @property {number} atUnixMs
 * @property {string[]} partial reasons why the report is not complete
 * @property {Prices} prices
 * @property {{ workloads: number, targets: number, findings: number, rssBytes: number, cpuCores:
 *   number, gcCores: number } & Saving} totals
 * @property {Workload[]} workloads in the order of their worst findings
 * @property {Finding[]} findings worst first
 */

/**
 * Queries the recorded series, and builds the report from them.
 * @param {import('../sources/prometheus-api').PrometheusApi} api
 * @param {object} options
 * @param {string} options.matchers additional label matchers, which begin with a comma; or ''
 * @param {Prices} options.prices
 * @param {number} options.nowUnixMs
 * @returns {Promise<FleetReport>}
 * @throws {SourceError}
 */
async function fleetReport (api, { matchers, prices, nowUnixMs }) {
  const recorded = /** @type {Recorded} */ (Object.fromEntries(await Promise.all(
    Object.entries(RECORDED).map(async ([key, name]) =>
      [key, await api.values(`{__name__="${name}"${matchers}}`, nowUnixMs / 1000)])
  )))
  if (recorded.targets.length === 0) {
    throw new SourceError(
      `--prometheus: ${api.url} has no series ${RECORDED.targets}${matchers && ` with ${matchers.slice(1)}`}: ` +
        `load the recording rules of ${RULES_FILE}, and wait for their first evaluation`
    )
  }
  const workloads = workloadsOf(recorded)
  const findings = findingsOf(recorded, workloads).map(finding => ({
    ...finding,
    savingPerMonth: moneyOf(finding, prices),
    versions: finding.versions.map(version => ({
      ...version,
      savingPerMonth: moneyOf(version, prices)
    }))
  })).sort(byUrgency)
  return {
    schema: 1,
    prometheus: api.url,
    atUnixMs: Math.round(nowUnixMs),
    partial: [...api.warnings, ...missingRules(recorded)],
    prices,
    totals: {
      workloads: workloads.size,
      targets: sumOf([...workloads.values()], 'targets'),
      findings: findings.length,
      rssBytes: sumOf([...workloads.values()], 'rssBytes'),
      cpuCores: sumOf([...workloads.values()], 'cpuCores'),
      gcCores: sumOf([...workloads.values()], 'gcCores'),
      ...savingOf(findings, prices)
    },
    workloads: orderWorkloads(workloads, findings, prices),
    findings
  }
}

/**
 * Lists missing rules. The series of a rule that an older rules file lacks are absent, which does
 * not mean zero.
 * @param {Recorded} recorded
 */
function missingRules (recorded) {
  const needed = /** @type {(keyof Recorded)[]} */ (
    recorded.verdicts.length > 0 ? ['rssBytes', 'cpuCores', 'fixes', 'starts'] : ['rssBytes', 'cpuCores'])
  return needed.filter(key => recorded[key].length === 0).map(key =>
    `no series ${RECORDED[key]}: load all rules of ${RULES_FILE}`)
}

/**
 * @param {Record<string, string>} metric
 * @returns {{ key: string, labels: Record<string, string> }} identity of a workload
 */
function identityOf (metric) {
  const labels = Object.fromEntries(
    Object.entries(metric).filter(([name]) => !DIVIDING.has(name)).sort()
  )
  return { key: JSON.stringify(labels), labels }
}

/** @param {Record<string, string>} metric */
const versionsOf = ({ service_version: serviceVersion = '', node_version: nodeVersion = '' }) =>
  ({ serviceVersion, nodeVersion })

/**
 * @param {Recorded} recorded
 * @returns {Map<string, Omit<WorkloadFacts, 'findings'>>}
 */
function workloadsOf ({ targets, rssBytes, cpuCores, gcCores, growthSince, growthBefore }) {
  /** @type {Map<string, Omit<WorkloadFacts, 'findings'>>} */
  const workloads = new Map()
  for (const { metric, value } of targets) {
    const { key, labels } = identityOf(metric)
    const known = workloads.get(key) ?? {
      workload: labels.service_name ?? '',
      labels,
      targets: 0,
      rssBytes: 0,
      cpuCores: 0,
      gcCores: 0,
      versions: [],
      growth: null
    }
    workloads.set(key, known)
    known.targets += value
    known.versions.push({ ...versionsOf(metric), targets: value, rssBytes: 0 })
  }
  for (const { metric, value } of rssBytes) {
    const found = workloads.get(identityOf(metric).key)
    const { serviceVersion, nodeVersion } = versionsOf(metric)
    const version = found?.versions.find(one =>
      one.serviceVersion === serviceVersion && one.nodeVersion === nodeVersion)
    if (!found || !version) continue
    found.rssBytes += value
    version.rssBytes += value
  }
  for (const [field, samples] of /** @type {const} */ ([['cpuCores', cpuCores], ['gcCores', gcCores]])) {
    for (const { metric, value } of samples) {
      const found = workloads.get(identityOf(metric).key)
      if (found) found[field] += value
    }
  }
  // A workload has one newest version, and so one sample in each series.
  const before = new Map(growthBefore.map(({ metric, value }) => [identityOf(metric).key, value]))
  for (const { metric, value } of growthSince) {
    const { key } = identityOf(metric)
    const found = workloads.get(key)
    const previous = before.get(key)
    if (found && previous !== undefined) found.growth = growthChange(metric, value, previous)
  }
  for (const { versions } of workloads.values()) versions.sort(byTargets)
  return workloads
}

/**
 * @param {Record<string, string>} metric
 * @param {number} bytesPerSecond
 * @param {number} previousBytesPerSecond
 * @returns {GrowthChange}
 */
function growthChange (metric, bytesPerSecond, previousBytesPerSecond) {
  const { service_version: version, previous_version: previousVersion } = metric
  return {
    version,
    previousVersion,
    bytesPerSecond,
    previousBytesPerSecond,
    text: `since ${version}: live heap grows ${perHour(bytesPerSecond)}; with ${previousVersion} ` +
      perHour(previousBytesPerSecond)
  }
}

/** @param {number} bytesPerSecond */
const perHour = bytesPerSecond => `${formatNumber(bytesPerSecond * 3600 / MIB)} MiB/h`

/**
 * @typedef {Omit<FindingVersion, 'savingPerMonth'>} UnpricedVersion
 * @typedef {Omit<Finding, 'savingPerMonth' | 'versions'> & { versions: UnpricedVersion[] }}
 *   UnpricedFinding
 */

/** Findings by workload and diagnosis, built from their samples. */
class Findings {
  #workloads
  /** @type {Map<string, UnpricedFinding>} */
  #all = new Map()

  /** @param {ReturnType<typeof workloadsOf>} workloads */
  constructor (workloads) {
    this.#workloads = workloads
  }

  get all () {
    return [...this.#all.values()]
  }

  /**
   * @param {Record<string, string>} metric labels of a sample
   * @returns {UnpricedFinding} the finding of this workload and diagnosis
   */
  of (metric) {
    const { key: workloadKey, labels } = identityOf(metric)
    const key = `${metric.diagnosis} ${workloadKey}`
    const known = this.#all.get(key) ?? {
      workload: labels.service_name ?? '',
      labels,
      diagnosis: metric.diagnosis,
      title: diagnoses.find(({ id }) => id === metric.diagnosis)?.title ?? metric.diagnosis,
      state: /** @type {const} */ ('suspected'),
      severity: null,
      targets: 0,
      suspectedTargets: 0,
      ofTargets: this.#workloads.get(workloadKey)?.targets ?? 0,
      sinceUnixMs: null,
      savingBytes: 0,
      savingCores: 0,
      fix: null,
      fixTargets: 0,
      runbook: null,
      versions: []
    }
    this.#all.set(key, known)
    return known
  }

  /**
   * @param {Record<string, string>} metric labels of a sample
   * @returns {UnpricedVersion} the version's part of the finding
   */
  versionOf (metric) {
    const { versions } = this.of(metric)
    const { serviceVersion, nodeVersion } = versionsOf(metric)
    const known = versions.find(one =>
      one.serviceVersion === serviceVersion && one.nodeVersion === nodeVersion) ??
      { serviceVersion, nodeVersion, targets: 0, savingBytes: 0, savingCores: 0 }
    if (!versions.includes(known)) versions.push(known)
    return known
  }
}

/**
 * @param {Recorded} recorded
 * @param {ReturnType<typeof workloadsOf>} workloads
 * @returns {UnpricedFinding[]}
 */
function findingsOf (recorded, workloads) {
  const findings = new Findings(workloads)
  for (const { metric, value } of recorded.verdicts) {
    const finding = findings.of(metric)
    finding.state = 'confirmed'
    finding.targets += value
    finding.severity = SEVERITIES.find(one =>
      one === finding.severity || one === metric.severity) ?? metric.severity
    findings.versionOf(metric).targets += value
  }
  for (const { metric, value } of recorded.suspicions) findings.of(metric).suspectedTargets += value
  for (const field of /** @type {const} */ (['savingBytes', 'savingCores'])) {
    for (const { metric, value } of recorded[field]) {
      findings.of(metric)[field] += value
      findings.versionOf(metric)[field] += value
    }
  }
  addFixes(findings, recorded.fixes)
  for (const { metric, value } of recorded.starts) {
    const finding = findings.of(metric)
    finding.sinceUnixMs = Math.min(finding.sinceUnixMs ?? Infinity, Math.round(value * 1000))
  }
  for (const { versions } of findings.all) versions.sort(byTargets)
  return findings.all
}

/**
 * The fix of a finding is the text that most of its targets received, over all versions.
 * @param {Findings} findings
 * @param {Sample[]} fixes
 */
function addFixes (findings, fixes) {
  /** Number of targets by text. @type {Map<UnpricedFinding, Map<string, number>>} */
  const counts = new Map()
  for (const { metric, value } of fixes) {
    const finding = findings.of(metric)
    finding.runbook ??= metric.runbook || null
    const { fix = '' } = metric
    const byText = counts.get(finding) ?? new Map()
    counts.set(finding, byText)
    const count = (byText.get(fix) ?? 0) + value
    byText.set(fix, count)
    if (fix !== '' && count > finding.fixTargets) {
      finding.fix = fix
      finding.fixTargets = count
    }
  }
}

/**
 * @param {Map<string, Omit<WorkloadFacts, 'findings'>>} workloads
 * @param {Finding[]} findings, worst first
 * @param {Prices} prices
 * @returns {Workload[]}
 */
function orderWorkloads (workloads, findings, prices) {
  /** @type {Map<string, Finding[]>} */
  const found = new Map()
  for (const finding of findings) {
    const key = JSON.stringify(finding.labels)
    found.set(key, [...found.get(key) ?? [], finding])
  }
  const order = [...new Set([...found.keys(), ...workloads.keys()])]
  return order.flatMap(key => {
    const workload = workloads.get(key)
    const own = found.get(key) ?? []
    return workload ? [{ ...workload, findings: own.length, ...savingOf(own, prices) }] : []
  })
}

/**
 * @param {Pick<Finding, 'savingBytes' | 'savingCores'>[]} findings
 * @param {Prices} prices
 * @returns {Saving}
 */
function savingOf (findings, prices) {
  const saving = {
    savingBytes: sumOf(findings, 'savingBytes'),
    savingCores: sumOf(findings, 'savingCores')
  }
  return { ...saving, savingPerMonth: moneyOf(saving, prices) }
}

/**
 * @param {{ savingBytes: number, savingCores: number }} saving
 * @param {Prices} prices
 * @returns {number | null} money per month; null without a price
 */
const moneyOf = ({ savingBytes, savingCores }, { gibPerMonth, corePerMonth }) =>
  gibPerMonth === null && corePerMonth === null
    ? null
    : savingBytes / GIB * (gibPerMonth ?? 0) + savingCores * (corePerMonth ?? 0)

/**
 * @template {string} Field
 * @param {readonly Record<Field, number>[]} items
 * @param {Field} field
 */
const sumOf = (items, field) => items.reduce((sum, item) => sum + item[field], 0)

/**
 * @param {{ targets: number, serviceVersion: string }} a
 * @param {{ targets: number, serviceVersion: string }} b
 */
const byTargets = (a, b) =>
  b.targets - a.targets || (a.serviceVersion < b.serviceVersion ? 1 : -1)

/** @param {Finding} finding */
const rankOf = ({ severity, state }) => {
  const rank = SEVERITIES.indexOf(severity ?? '')
  return state === 'confirmed' && rank >= 0 ? rank : SEVERITIES.length
}

/**
 * Orders findings, worst first: by severity, then by the saving of the fix, then by the number of
 * targets.
 * @param {Finding} a
 * @param {Finding} b
 */
const byUrgency = (a, b) =>
  rankOf(a) - rankOf(b) ||
  (b.savingPerMonth ?? 0) - (a.savingPerMonth ?? 0) ||
  b.savingBytes - a.savingBytes ||
  b.savingCores - a.savingCores ||
  b.targets + b.suspectedTargets - a.targets - a.suspectedTargets ||
  (a.workload < b.workload ? -1 : a.workload > b.workload ? 1 : a.diagnosis < b.diagnosis ? -1 : 1)

module.exports = { fleetReport, RECORDED, RULES_FILE }
