'use strict'

const { defineSource, SourceError } = require('./define-source')
const { PrometheusApi } = require('./prometheus-api')
const { Lives } = require('./lives')
const { StoredTarget } = require('./stored-target')
const { metricNames, MARKERS, fieldsOf } = require('./stored-metrics')

/** Time range of one query, which limits the samples that are held as text. */
const CHUNK_SECONDS = 7200
/** A longer scrape interval gives too few samples for a rate over half a minute. */
const LONG_INTERVAL_SECONDS = 15

const SAMPLED = 'a Prometheus stores one sample per scrape, and nothing in between'
const LOSES_GCS = 'prom-client misses most GCs if they are frequent'

/** prom-client's default metrics. */
const promClient = defineSource({
  id: 'prom-client',
  title: "a Prometheus with prom-client's metrics",
  accepted: '',
  // prom-client exports neither the anonymous part of RSS nor the resident heap. RSS and the
  // committed heap replace them; both are slightly larger.
  fields: [
    ...fieldsOf('nodejs_'),
    'rssAnonBytes',
    'heapPhysicalBytes',
    'spaces',
    'gc',
    'resources',
    'liveHeapBytes',
    'liveHeapMajors'
  ],
  lacks:
    'the limits of heap and container, causes of GCs, Buffers between two scrapes, malloc, and ' +
      'waits for the event loop',
  unsure: { '*': SAMPLED },
  cannotExclude: { 'semi-space-starvation': LOSES_GCS, 'heap-limit-thrash': LOSES_GCS },
  bounds: ({ containerLimitBytes, nodeOptions }) =>
    (containerLimitBytes ?? nodeOptions)
      ? undefined
      : 'prom-client exports neither the heap limit nor the container limit: give them with ' +
        '--memory and --flags.',
  accepts: () => false,
  read: async () => {}
})

/** Stored metrics of a memwatch exporter. */
const memwatchMetrics = defineSource({
  id: 'memwatch-metrics',
  title: "a Prometheus with memwatch's metrics",
  accepted: '',
  fields: [
    ...fieldsOf('nodejs_'),
    ...fieldsOf('memwatch_'),
    'spaces',
    'gc',
    'resources',
    'liveHeapMajors'
  ],
  lacks:
    "the time between two scrapes: peaks of Buffers, the places of malloc's memory, waits for " +
      'the event loop',
  unsure: { '*': SAMPLED },
  accepts: () => false,
  read: async () => {}
})

/**
 * Judges the metrics of a fleet that Prometheus stored.
 *
 * @param {object} asked
 * @param {string} asked.url
 * @param {string} asked.selector {job="api"}
 * @param {number} asked.sinceSeconds
 * @param {number} [asked.stepSeconds] shortest time between two samples
 * @param {import('./define-source').Given} given
 * @param {{ onError?: (error: Error) => void, onProgress?: (share: number) => void, nowUnixMs?: ()
 *   => number }} [options]
 * @returns {Promise<{ targets: import('@memwatch/engine/history/target').Target[], source:
 *   import('./define-source').Source, notes: string[] }>} source: the source with less data, if
 *   there are both
 * @throws {SourceError}
 */
async function judgePrometheus (
  { url, selector, sinceSeconds, stepSeconds = 0 },
  given,
  { onError, onProgress = () => {}, nowUnixMs = Date.now } = {}
) {
  const api = new PrometheusApi(url)
  const inner = innerOf(selector)
  const untilUnixSeconds = nowUnixMs() / 1000
  const find = (/** @type {string} */ name) =>
    api.labels(`{__name__="${name}"${inner}}`, sinceSeconds, untilUnixSeconds)
  const wanted = onePerProcess(await find(MARKERS.own), await find(MARKERS.promClient))
  const lives = {
    own: new Lives(memwatchMetrics, given, { onError }),
    plain: new Lives(promClient, given, { onError })
  }
  if (wanted.length === 0) {
    throw new SourceError(
      `--prometheus: no metrics of prom-client or memwatch match ${selector} in the last ` +
        `${sinceSeconds} s`
    )
  }

  /** @type {Set<string>} */
  const notes = new Set()
  for (const [i, { labels, own }] of wanted.entries()) {
    const target = new StoredTarget(own ? lives.own : lives.plain, labels, given, {
      own,
      stepSeconds
    })
    for (
      let from = untilUnixSeconds - sinceSeconds;
      from < untilUnixSeconds;
      from += CHUNK_SECONDS
    ) {
      const to = Math.min(untilUnixSeconds, from + CHUNK_SECONDS)
      target.take(await api.samples(seriesOf(labels), from, to))
      onProgress((i + (to - untilUnixSeconds + sinceSeconds) / sinceSeconds) / wanted.length)
    }
    target.close()
    if (target.intervalSeconds > LONG_INTERVAL_SECONDS) {
      notes.add(
        `one sample every ${Math.round(target.intervalSeconds)} s: checks that need a rate over ` +
          'half a minute stay unknown'
      )
    }
  }
  const targets = [...lives.own.all, ...lives.plain.all]
  if (lives.own.all.length > 0 && lives.plain.all.length > 0) {
    notes.add(
      `${lives.own.all.length} of ${targets.length} are evaluated from metrics of memwatch, the ` +
        'others from those of prom-client'
    )
  }
  for (const refusal of [...lives.own.refusals, ...lives.plain.refusals]) notes.add(refusal)
  return {
    targets,
    source: lives.plain.all.length > 0 ? promClient : memwatchMetrics,
    notes: [...notes]
  }
}

/**
 * Chooses one set of series per process: memwatch's metrics, if both memwatch and prom-client
 * export the process.
 * @param {Record<string, string>[]} own labels labels of memwatch's series
 * @param {Record<string, string>[]} plain labels labels of prom-client's series
 */
function onePerProcess (own, plain) {
  const [ownLabels, plainLabels] = [own, plain].map(found =>
    found.map(({ __name__, ...labels }) => labels)
  )
  const known = new Set(ownLabels.map(keyOf))
  return [
    ...ownLabels.map(labels => ({ labels, own: true })),
    ...plainLabels
      .filter(labels => !known.has(keyOf(labels)))
      .map(labels => ({ labels, own: false }))
  ]
}

/**
 * Matchers between the braces, to which others can be added.
 * @param {string} selector
 * @returns {string} '', or matchers that begin with a comma
 * @throws {SourceError}
 */
function innerOf (selector) {
  const found = /^\s*\{(.*)\}\s*$/s.exec(selector)
  if (!found) {
    throw new SourceError(
      `--selector: expected labels such as '{job="api"}', got ${JSON.stringify(selector)}`
    )
  }
  const inner = found[1].trim().replace(/,$/, '')
  return inner === '' ? '' : `,${inner}`
}

/** @param {Record<string, string>} labels */
const keyOf = labels => JSON.stringify(Object.entries(labels).sort())

/**
 * Selector of all series of one target only. Labels that the target lacks must be empty, so that
 * targets with such labels do not match.
 * @param {Record<string, string>} labels
 */
function seriesOf (labels) {
  const matchers = Object.entries({ target: '', thread: '', ...labels }).map(
    ([name, value]) => `${name}=${JSON.stringify(value)}`
  )
  return `{__name__=~"${metricNames.join('|')}",${matchers.join(',')}}`
}

module.exports = { judgePrometheus, innerOf, promClient, memwatchMetrics }
