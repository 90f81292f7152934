'use strict'

const { startServerProcess } = require('./server-process')

/**
 * @typedef {{ metric: Record<string, string>, value: [unixSeconds: number, value: string] }} Sample
 * @typedef {{ state: 'pending' | 'firing', labels: Record<string, string>, annotations: Record<string, string> }} RuleAlert
 *
 * @typedef {object} PrometheusOptions
 * @property {string} file the binary
 * @property {string} [rules] YAML of a rules file
 * @property {string[]} targets HOST:PORT to scrape
 * @property {string} [alertmanagerUrl]
 * @property {string} [job] name of the scrape job
 * @property {Record<string, string>} [labels] that scraping adds to every series, as discovery does: namespace, pod
 */

/**
 * A real Prometheus that scrapes and evaluates every second.
 * @param {PrometheusOptions} options
 */
async function startPrometheus ({ file, rules, targets, alertmanagerUrl, job = 'memwatch', labels }) {
  const config = {
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    ...(rules && { rule_files: ['rules.yml'] }),
    scrape_configs: [{ job_name: job, static_configs: [{ targets, labels }] }],
    ...(alertmanagerUrl && { alerting: { alertmanagers: [{ static_configs: [{ targets: [new URL(alertmanagerUrl).host] }] }] } })
  }
  const server = await startServerProcess({
    file,
    files: { 'prometheus.yml': JSON.stringify(config), ...(rules && { 'rules.yml': rules }) },
    args: (folder, port) => ['--config.file=prometheus.yml', `--storage.tsdb.path=${folder}/data`, `--web.listen-address=127.0.0.1:${port}`]
  })
  /** @param {string} path */
  const ask = async path => {
    const response = await fetch(server.url + path, { signal: AbortSignal.timeout(10_000) })
    const { status, data, error } = await response.json()
    if (status !== 'success') throw new Error(`Prometheus, ${path}: ${error}`)
    return data
  }
  return {
    ...server,
    /** An instant query. @param {string} expr @returns {Promise<Sample[]>} */
    query: async expr => (await ask(`/api/v1/query?query=${encodeURIComponent(expr)}`)).result,
    /** @returns {Promise<RuleAlert[]>} pending and firing, those kept firing included */
    alerts: async () => (await ask('/api/v1/alerts')).alerts
  }
}

module.exports = { startPrometheus }
