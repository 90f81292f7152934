'use strict'

const { ConfigError } = require('../config')

/** Posts changes of verdicts, their holders, and ended follow-ups to the URL of --webhook. */
class WebhookPart {
  name = 'webhook'
  /** @type {import('../expose/webhook').Webhook | undefined} */
  #webhook

  get state () {
    return { webhook: this.#webhook?.counts }
  }

  /**
   * @param {import('../exporter').Exporter} exporter
   * @throws {ConfigError} if the secret cannot be read or used
   */
  start (exporter) {
    const { config: { webhook: url, webhookSecretFile: secretFile }, log } = exporter
    if (!url) return
    const webhook = this.#webhook = openWebhook({
      url,
      secretFile,
      onFailure: ({ message }) => log.warn(`--webhook: request failed after all retries: ${message}`)
    })
    exporter.on('verdict', (target, verdict) => webhook.changed(target, verdict))
    exporter.on('holders', target => webhook.explained(target))
    exporter.on('followed', (target, followUp) => webhook.followed(target, followUp))
  }

  stop () {
    this.#webhook?.stop()
  }
}

/**
 * @param {ConstructorParameters<typeof import('../expose/webhook').Webhook>[0]} options
 * @throws {ConfigError}
 */
function openWebhook (options) {
  const { Webhook } = require('../expose/webhook')
  try {
    return new Webhook(options)
  } catch (error) {
    throw new ConfigError(`--webhook-secret-file: ${/** @type {Error} */ (error).message}`)
  }
}

module.exports = { WebhookPart }
