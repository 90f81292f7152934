'use strict'

const { startServerProcess } = require('./server-process')

/**
 * A real Alertmanager that groups for a second and sends everything to one webhook.
 * @param {{ file: string, webhookUrl: string }} options
 */
async function startAlertmanager ({ file, webhookUrl }) {
  const config = {
    route: { receiver: 'hook', group_by: ['alertname', 'target'], group_wait: '1s', group_interval: '2s', repeat_interval: '1h' },
    receivers: [{ name: 'hook', webhook_configs: [{ url: webhookUrl, send_resolved: true }] }]
  }
  return startServerProcess({
    file,
    files: { 'alertmanager.yml': JSON.stringify(config) },
    args: (folder, port) => ['--config.file=alertmanager.yml', `--storage.path=${folder}/data`, `--web.listen-address=127.0.0.1:${port}`, '--cluster.listen-address=']
  })
}

module.exports = { startAlertmanager }
