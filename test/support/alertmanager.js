'use strict'

const { startServerProcess } = require('./server-process')

/** Short times for a test; an Alertmanager in production waits longer. */
const TIMING = { group_wait: '1s', group_interval: '2s', repeat_interval: '1h' }

/**
 * A real Alertmanager. Without a configuration it sends all alerts to one webhook.
 * @param {object} options
 * @param {string} options.file the binary
 * @param {string} [options.webhookUrl]
 * @param {object} [options.config] a whole configuration instead
 */
async function startAlertmanager ({ file, webhookUrl, config }) {
  const everything = {
    route: { receiver: 'hook', group_by: ['alertname', 'target'], ...TIMING },
    receivers: [{ name: 'hook', webhook_configs: [{ url: webhookUrl, send_resolved: true }] }]
  }
  return startServerProcess({
    file,
    files: { 'alertmanager.yml': JSON.stringify(config ?? everything) },
    args: (folder, port) => [
      '--config.file=alertmanager.yml',
      `--storage.path=${folder}/data`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--cluster.listen-address='
    ]
  })
}

module.exports = { startAlertmanager, TIMING }
