'use strict'

const { startServerProcess } = require('./server-process')

/**
 * A real Prometheus that scrapes and evaluates every second.
 * @param {object} options
 * @param {string} options.file the binary
 * @param {string} options.rules YAML
 * @param {string[]} options.targets HOST:PORT to scrape, as job memwatch
 * @param {string} options.alertmanagerUrl
 */
async function startPrometheus ({ file, rules, targets, alertmanagerUrl }) {
  const config = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: ['rules.yml'],
    scrape_configs: [{ job_name: 'memwatch', static_configs: [{ targets }] }],
    alerting: { alertmanagers: [{ static_configs: [{ targets: [new URL(alertmanagerUrl).host] }] }] }
  }
  const { url, stop } = await startServerProcess({
    file,
    files: { 'rules.yml': rules, 'prometheus.yml': JSON.stringify(config) },
    args: (folder, port) => ['--config.file=prometheus.yml', `--storage.tsdb.path=${folder}/data`, `--web.listen-address=127.0.0.1:${port}`]
  })
  const ask = async path => (await (await fetch(url + path)).json()).data
  return {
    url,
    stop,
    /** @param {string} expr @returns {Promise<{ metric: Record<string, string>, value: [number, string] }[]>} */
    query: async expr => (await ask(`/api/v1/query?query=${encodeURIComponent(expr)}`)).result,
    /** @returns {Promise<{ state: string, labels: Record<string, string>, annotations: Record<string, string> }[]>} */
    alerts: async () => (await ask('/api/v1/alerts')).alerts
  }
}

module.exports = { startPrometheus }
