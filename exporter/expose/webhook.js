'use strict'

const fs = require('node:fs')
const { randomUUID } = require('node:crypto')
const { setTimeout: wait } = require('node:timers/promises')
const { nameOf } = require('./targets')
const { attachedVerdicts } = require('@memwatch/engine/verdicts/attached')
const { findCase } = require('@memwatch/engine/verdicts/case')
const { selectHolders } = require('@memwatch/engine/verdicts/holders')
const { Told } = require('@memwatch/engine/verdicts/told')
const { holderText } = require('@memwatch/engine/text/suspect-text')
const { pasteLine } = require('@memwatch/engine/fixes/paste-line')
const { toJson } = require('@memwatch/engine/text/json')

/** Delays before each retry of a message. */
const RETRY_AFTER_MS = Object.freeze([1000, 5000, 30_000, 120_000])
const TIMEOUT_MS = 10_000
/**
 * Queue limit; the oldest message is dropped first, because a receiver that returns needs the
 * present state.
 */
const MOST_WAITING = 100
/** 4xx statuses that are worth a retry. */
const WORTH_A_RETRY = new Set([408, 425, 429])

/** Outcomes of a message. @type {readonly ['delivered', 'failed', 'dropped']} */
const OUTCOMES = Object.freeze(['delivered', 'failed', 'dropped'])

/**
 * Posts every change of a verdict to one URL: suspected, confirmed and resolved. Messages and
 * signatures follow standardwebhooks.com, with the headers webhook-id (the same for each attempt),
 * webhook-timestamp and webhook-signature.
 */
class Webhook {
  #url
  #signer
  #retryAfterMs
  #onFailure
  /** @type {{ id: string, body: string, at: Date }[]} */
  #waiting = []
  #sending = false
  #over = new AbortController()
  #told = new Told()
  /** @type {Map<typeof OUTCOMES[number], number>} */
  counts = new Map(OUTCOMES.map(outcome => [outcome, 0]))

  /**
   * @param {object} options
   * @param {string} options.url
   * @param {string} [options.secretFile] file with the secret by which messages are signed
   * @param {readonly number[]} [options.retryAfterMs]
   * @param {(error: Error) => void} options.onFailure called for a message whose last attempt
   *   failed
   * @throws {Error} if the secret cannot be read or used
   */
  constructor ({ url, secretFile, retryAfterMs = RETRY_AFTER_MS, onFailure }) {
    this.#url = url
    this.#retryAfterMs = retryAfterMs
    this.#onFailure = onFailure
    const { Webhook: Signer } = require('standardwebhooks')
    this.#signer = secretFile ? new Signer(fs.readFileSync(secretFile, 'utf8').trim()) : undefined
  }

  /**
   * @param {import('@memwatch/engine/history/target').Target} target
   * @param {import('@memwatch/engine/verdicts/evaluate').Verdict} verdict
   */
  changed (target, verdict) {
    const change = this.#told.change(target, verdict)
    if (change) this.#queue('verdict.changed', target, verdict, change.was)
  }

  /**
   * Handles the holders found in a heap snapshot of a target: posts them for each reported finding
   * that they explain.
   * @param {import('@memwatch/engine/history/target').Target} target
   */
  explained (target) {
    for (const verdict of attachedVerdicts(target)) {
      if (verdict.holders === null || !this.#told.stands(target, verdict)) continue
      this.#queue('verdict.explained', target, verdict, verdict.state)
    }
  }

  /**
   * Handles the end of a follow-up, in which the fix had its effect or not.
   * @param {import('@memwatch/engine/history/target').Target} target
   * @param {import('@memwatch/engine/verdicts/follow-up').FollowUp} followUp
   */
  followed (target, { workload, diagnosis, title, fix, change, ending, text, effectRatio }) {
    this.#add('fix.followed', target, {
      workload, diagnosis, title, ending, summary: text, effectRatio, fixTitle: fix, fix: change
    })
  }

  /**
   * @param {'verdict.changed' | 'verdict.explained'} type
   * @param {import('@memwatch/engine/history/target').Target} target
   * @param {import('@memwatch/engine/verdicts/evaluate').Verdict} verdict
   * @param {string | null} was state in the previous message
   */
  #queue (type, target, verdict, was) {
    const { diagnosis, title, state, severity, summary, evidence, impact, fix, runbook } = verdict
    this.#add(type, target, {
      diagnosis,
      title,
      severity,
      state,
      was,
      summary,
      impact,
      evidence: evidence.map(({ text }) => text),
      holder: holderText(selectHolders(verdict, findCase(target).holders)) || null,
      fix: pasteLine(fix[0]),
      runbook
    })
  }

  /**
   * @param {'verdict.changed' | 'verdict.explained' | 'fix.followed'} type
   * @param {import('@memwatch/engine/history/target').Target} target
   * @param {object} content
   */
  #add (type, target, content) {
    const at = new Date()
    this.#waiting.push({
      id: `msg_${randomUUID()}`,
      at,
      body: toJson({
        type,
        timestamp: at.toISOString(),
        data: { ...nameOf(target), host: target.hello.host ?? null, ...content }
      })
    })
    if (this.#waiting.length > MOST_WAITING) {
      this.#waiting.shift()
      this.#count('dropped')
    }
    this.#send()
  }

  /** Stops; waiting messages are dropped. */
  stop () {
    this.#over.abort()
  }

  /** @param {typeof OUTCOMES[number]} outcome */
  #count (outcome) {
    this.counts.set(outcome, (this.counts.get(outcome) ?? 0) + 1)
  }

  /** Sends messages one after the other, so that they arrive in order. */
  async #send () {
    if (this.#sending) return
    this.#sending = true
    for (
      let message = this.#waiting.shift();
      message && !this.#over.signal.aborted;
      message = this.#waiting.shift()
    ) {
      const failure = await this.#deliver(message)
      this.#count(failure ? 'failed' : 'delivered')
      if (failure && !this.#over.signal.aborted) this.#onFailure(failure)
    }
    this.#sending = false
  }

  /**
   * @param {{ id: string, body: string, at: Date }} message
   * @returns {Promise<Error | undefined>} reason of the failure; undefined if delivered
   */
  async #deliver ({ id, body, at }) {
    const { signal } = this.#over
    for (let tried = 0; ; tried++) {
      const failure = await this.#post(id, body, at)
      if (!failure || failure.final || tried >= this.#retryAfterMs.length) return failure?.error
      try {
        await wait(this.#retryAfterMs[tried], undefined, { signal, ref: false })
      } catch {
        return failure.error // The exporter stops: no further attempt.
      }
    }
  }

  /**
   * @param {string} id
   * @param {string} body
   * @param {Date} at
   * @returns {Promise<{ error: Error, final: boolean } | undefined>}
   */
  async #post (id, body, at) {
    try {
      const headers = {
        'content-type': 'application/json',
        'user-agent': 'memwatch',
        'webhook-id': id,
        'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
        ...(this.#signer && { 'webhook-signature': this.#signer.sign(id, at, body) })
      }
      const {
        ok,
        status,
        body: answer
      } = await fetch(this.#url, {
        method: 'POST',
        headers,
        body,
        redirect: 'error',
        signal: AbortSignal.any([this.#over.signal, AbortSignal.timeout(TIMEOUT_MS)])
      })
      await answer?.cancel()
      return ok
        ? undefined
        : {
            error: new Error(`it answered ${status}`),
            final: status >= 400 && status < 500 && !WORTH_A_RETRY.has(status)
          }
    } catch (error) {
      const { message, cause } = /** @type {Error & { cause?: Error }} */ (error)
      return { error: new Error(cause?.message ?? message), final: false }
    }
  }
}

module.exports = { Webhook, OUTCOMES }
