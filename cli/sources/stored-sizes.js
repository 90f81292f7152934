'use strict'

const { rightSize, LEAKS } = require('@memwatch/engine/v8/right-size')
const { SizeDays, DAY_SECONDS } = require('@memwatch/engine/v8/size-days')
const { nodeVersion } = require('@memwatch/engine/v8/node-versions')
const { changeSizes } = require('@memwatch/engine/fixes/change-sizes')
const { SourceError } = require('./define-source')
const { PrometheusApi } = require('./prometheus-api')

/** Upper bound of steps in a query: Prometheus answers with at most 11,000. */
const MOST_STEPS = 10_000
const MINUTE_SECONDS = 60

/**
 * Query for the highest value in each step, so that no scrape is lost; main threads only.
 * @param {string} name
 */
const highest = name => (/** @type {string} */ inner, /** @type {number} */ stepSeconds) =>
  `max_over_time(${name}{${inner}}[${stepSeconds}s])`

const QUERIES = Object.freeze({
  ownBytes: highest('process_resident_memory_bytes'),
  heapUsedBytes: highest('memwatch_heap_used_bytes'),
  liveHeapBytes: highest('memwatch_live_heap_bytes'),
  heapBytes: (/** @type {string} */ inner) =>
    `sum without (space) (memwatch_heap_space_physical_bytes{${inner}})`
})

/**
 * Sizes of a workload, from metrics of memwatch's exporter that Prometheus stored.
 * @param {object} asked
 * @param {string} asked.url
 * @param {string} asked.selector labels of one workload, as {job="shop"}
 * @param {number} asked.sinceSeconds
 * @param {string} [asked.token]
 * @param {boolean} [asked.guaranteed]
 * @param {() => number} [nowUnixMs]
 * @returns {Promise<import('@memwatch/engine/v8/right-size').RightSize & { change:
 *   import('@memwatch/engine/diagnoses/define-diagnosis').Change | null }>}
 * @throws {SourceError}
 */
async function sizesFromPrometheus (
  { url, selector, sinceSeconds, token, guaranteed }, nowUnixMs = Date.now
) {
  const api = new PrometheusApi(url, { token })
  const inner = innerOf(selector)
  const main = [inner, 'thread=~"main|"'].filter(Boolean).join(',')
  const until = Math.floor(nowUnixMs() / 1000)
  const stepSeconds =
    Math.ceil(sinceSeconds / MOST_STEPS / MINUTE_SECONDS) * MINUTE_SECONDS
  const span = { fromUnixSeconds: until - sinceSeconds, toUnixSeconds: until, stepSeconds }
  /** @param {keyof typeof QUERIES} name */
  const read = async name =>
    byProcess(await api.range(QUERIES[name](main, stepSeconds), span))
  const own = await read('ownBytes')
  if (own.size === 0) {
    throw new SourceError(
      `--selector: expected labels of a workload that memwatch watches, got ${selector}: ` +
        `${url.replace(/\/\/[^@/]*@/, '//')} has no process_resident_memory_bytes of it in the ` +
        `last ${Number((sinceSeconds / DAY_SECONDS).toFixed(1))} days`
    )
  }
  const [used, live, heap] = [
    await read('heapUsedBytes'), await read('liveHeapBytes'), await read('heapBytes')
  ]
  const containers = await findContainers(api, inner, sinceSeconds, until)
  const days = new SizeDays({ stepSeconds })
  const groups = groupBy([...own.keys()], key => containers.get(key) ?? key)
  for (const [container, processes] of groups) {
    addContainer(days, container, processes, { own, used, live, heap })
  }
  /** @param {string} query */
  const now = async query => await api.at(query, until)
  const over = `[${Math.ceil(sinceSeconds)}s]`
  const largest = async (/** @type {string} */ name) => Math.max(-1, ...(
    await now(`last_over_time(${name}{${main}}${over})`)).map(({ value }) => Number(value[1])))
  const limit = await largest('memwatch_container_limit_bytes')
  const heapLimit = await largest('memwatch_heap_size_limit_bytes')
  const exits = await now(`increase(memwatch_target_exits_total{${
    [inner, 'reason=~"oom_kill|heap_oom"'].filter(Boolean).join(',')}}${over})`)
  const leaks = await now(`memwatch_diagnosis{${
    [inner, `state="confirmed",diagnosis=~"${LEAKS.join('|')}"`].filter(Boolean).join(',')}} == 1`)
  const [info] = await now(`last_over_time(memwatch_target_info{${main}}${over})`)
  const version = info && nodeVersion(info.metric.node_version, info.metric.v8_version)
  const answer = rightSize({
    days,
    leaks: [...new Set(leaks.map(({ metric }) => metric.diagnosis))],
    deaths: exits.flatMap(({ metric, value }) => Array(Math.round(Number(value[1])))
      .fill(/** @type {import('@memwatch/engine/v8/right-size').MemoryDeath} */ (metric.reason))),
    present: {
      memoryLimitBytes: limit < 0 ? null : limit,
      heapSizeLimitBytes: heapLimit < 0 ? null : heapLimit
    },
    // Metrics do not contain the flags of the process, so the answer contains each size as a flag.
    process: undefined,
    guaranteed
  })
  if (version && version.major < 20) {
    answer.notes.push(`Node.js ${version.text} sees no limit of cgroup v2: it needs the flags.`)
  }
  return { ...answer, change: answer.sizes && changeSizes(answer.sizes) }
}

/**
 * Adds the readings of a container: in each step the sum over its processes.
 * @param {SizeDays} days
 * @param {string} container
 * @param {string[]} processes keys of its processes
 * @param {Record<'own' | 'used' | 'live' | 'heap', Map<string, Map<number, number>>>} series
 */
function addContainer (days, container, processes, { own, used, live, heap }) {
  const times = [...new Set(processes.flatMap(key => [...(own.get(key)?.keys() ?? [])]))]
    .sort((a, b) => a - b)
  for (const time of times) {
    const sum = processes.reduce((sum, key) => sum + (own.get(key)?.get(time) ?? 0), 0)
    for (const key of processes) {
      const ownBytes = own.get(key)?.get(time)
      if (ownBytes === undefined) continue
      const heapBytes = heap.get(key)?.get(time)
      days.add(container, {
        unixSeconds: time,
        ownBytes,
        othersBytes: sum - ownBytes,
        heapUsedBytes: used.get(key)?.get(time),
        liveHeapBytes: live.get(key)?.get(time),
        ...(heapBytes !== undefined && { besideBytes: Math.max(0, ownBytes - heapBytes) })
      })
    }
  }
}

/**
 * Finds the container of each process. A process without labels of Kubernetes is its own container.
 * @param {PrometheusApi} api
 * @param {string} inner
 * @param {number} sinceSeconds
 * @param {number} until
 * @returns {Promise<Map<string, string>>} keys of containers, by the key of the process
 */
async function findContainers (api, inner, sinceSeconds, until) {
  const found = await api.labels(`memwatch_target_pod_info{${inner}}`, sinceSeconds, until)
  return new Map(found.map(labels => {
    const {
      k8s_namespace_name: _, k8s_pod_name: pod, k8s_pod_uid: uid, k8s_container_name: container,
      ...own
    } = labels
    return [keyOf(own), JSON.stringify([uid || pod, container])]
  }))
}

/**
 * @param {import('./prometheus-api').Series[]} series
 * @returns {Map<string, Map<number, number>>} values by time, by the key of the process
 */
const byProcess = series => new Map(series.map(({ metric, values }) =>
  [keyOf(metric), new Map(values.map(([time, value]) => [time, Number(value)]))]))

/** @param {Record<string, string>} labels */
const keyOf = ({ __name__, ...labels }) => JSON.stringify(Object.entries(labels).sort())

/**
 * @param {string[]} keys
 * @param {(key: string) => string} by
 * @returns {Map<string, string[]>}
 */
function groupBy (keys, by) {
  /** @type {Map<string, string[]>} */
  const groups = new Map()
  for (const key of keys) groups.set(by(key), [...(groups.get(by(key)) ?? []), key])
  return groups
}

/**
 * Matchers between the braces.
 * @param {string} selector
 * @throws {SourceError}
 */
function innerOf (selector) {
  const found = /^\s*\{(.*)\}\s*$/s.exec(selector)
  if (!found) {
    throw new SourceError(
      `--selector: expected labels such as '{job="shop"}', got ${JSON.stringify(selector)}`
    )
  }
  return found[1].trim().replace(/,$/, '')
}

module.exports = { sizesFromPrometheus }
