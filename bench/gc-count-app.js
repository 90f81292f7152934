'use strict'

// Allocates in bursts, as a server under load does, and counts its GCs with prom-client's default
// metrics. It ends after some seconds with a pause, so that observers have seen all GCs.
const { collectDefaultMetrics, register } = require('prom-client')

collectDefaultMetrics()
const end = Date.now() + Number(process.argv[2]) * 1000

/** About 30 ms of work that fills the new space many times over. */
function burst () {
  const kept = []
  for (const until = Date.now() + 30; Date.now() < until;) {
    kept[kept.length % 500] = { text: `row ${kept.length}`, at: [1, 2, 3] }
  }
  if (Date.now() < end) setTimeout(burst, 5)
  else setTimeout(report, 2500)
}

async function report () {
  /** The type of a histogram's metric, as prom-client's own type lacks `metricName`. @type {any} */
  const metric = await register.getSingleMetric('nodejs_gc_duration_seconds')?.get()
  /** @type {{ metricName?: string, value: number }[]} */
  const values = metric.values
  const count = values
    .filter(({ metricName }) => metricName?.endsWith('_count'))
    .reduce((sum, { value }) => sum + value, 0)
  const pauseSeconds = values
    .filter(({ metricName }) => metricName?.endsWith('_sum'))
    .reduce((sum, { value }) => sum + value, 0)
  const otherHooks = /** @type {any} */ (globalThis).countOtherGcs?.()
  console.log(
    JSON.stringify({ promClient: count, promClientPauseSeconds: pauseSeconds, otherHooks })
  )
  process.exit(0)
}

burst()
