'use strict'

const { startServerProcess } = require('./server-process')

/**
 * @typedef {{ metric: Record<string, string>, value: [unixSeconds: number, value: string] }} Sample
 * @typedef {{ state: 'pending' | 'firing', labels: Record<string, string>, annotations:
 *   Record<string, string> }} RuleAlert
 *
 * @typedef {object} PrometheusOptions
 * @property {string} file the binary
 * @property {string} [rules] YAML of a rules file
 * @property {string[]} [targets] HOST:PORT to scrape
 * @property {{ target: string, path: string, labels: Record<string, string> }[]} [jobs] the same
 *   with a path and labels of each
 * @property {number} [intervalSeconds] interval of scrapes and evaluations
 * @property {boolean} [honorLabels] keeps job and instance of scraped series
 * @property {string} [alertmanagerUrl]
 * @property {string} [job] name of the scrape job
 * @property {boolean} [otlp] accepts OTLP, too; Prometheus 3
 * @property {Record<string, string>} [labels] labels that scraping adds to every series, as service
 *   discovery does: namespace, pod
 */

/**
 * Starts a real Prometheus, which scrapes and evaluates every second by default.
 * @param {PrometheusOptions} options
 */
async function startPrometheus ({
  file,
  rules,
  targets = [],
  jobs,
  intervalSeconds = 1,
  honorLabels = false,
  alertmanagerUrl,
  job = 'memwatch',
  labels,
  otlp = false
}) {
  const interval = `${intervalSeconds}s`
  const config = {
    global: { scrape_interval: interval, scrape_timeout: interval, evaluation_interval: interval },
    ...(rules && { rule_files: ['rules.yml'] }),
    ...(otlp && {
      otlp: { promote_resource_attributes: ['memwatch.target', 'memwatch.thread'] },
      storage: { tsdb: { out_of_order_time_window: '10m' } }
    }),
    scrape_configs: [
      {
        job_name: job,
        ...(honorLabels && { honor_labels: true }),
        static_configs: jobs
          ? jobs.map(({ target, path, labels }) => ({
            targets: [target],
            labels: { __metrics_path__: path, ...labels }
          }))
          : [{ targets, labels }]
      }
    ],
    ...(alertmanagerUrl && {
      alerting: {
        alertmanagers: [{ static_configs: [{ targets: [new URL(alertmanagerUrl).host] }] }]
      }
    })
  }
  const server = await startServerProcess({
    file,
    files: { 'prometheus.yml': JSON.stringify(config), ...(rules && { 'rules.yml': rules }) },
    args: (folder, port) => [
      '--config.file=prometheus.yml',
      `--storage.tsdb.path=${folder}/data`,
      `--web.listen-address=127.0.0.1:${port}`,
      ...(otlp ? ['--web.enable-otlp-receiver'] : [])
    ]
  })
  /** @param {string} path */
  const ask = async path => {
    const response = await fetch(server.url + path, { signal: AbortSignal.timeout(10_000) })
    const { status, data, error } = /** @type {any} */ (await response.json())
    if (status !== 'success') throw new Error(`Prometheus, ${path}: ${error}`)
    return data
  }
  return {
    ...server,
    /**
     * An instant query.
     * @param {string} expr
     * @returns {Promise<Sample[]>}
     */
    query: async expr => (await ask(`/api/v1/query?query=${encodeURIComponent(expr)}`)).result,
    /**
     * A range query over the last `seconds`.
     * @param {string} expr
     * @param {number} seconds
     * @param {number} step
     * @returns {Promise<{ metric: Record<string, string>, values: [number, string][] }[]>}
     */
    queryRange: async (expr, seconds, step) => {
      const now = Date.now() / 1000
      return (
        await ask(
          `/api/v1/query_range?query=${encodeURIComponent(expr)}&start=${now - seconds}&end=${now}&step=${step}`
        )
      ).result
    },
    /**
     * @returns {Promise<RuleAlert[]>} pending and firing alerts, including those in keep_firing_for
     */
    alerts: async () => (await ask('/api/v1/alerts')).alerts
  }
}

module.exports = { startPrometheus }
