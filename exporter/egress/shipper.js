'use strict'

const { createHash } = require('node:crypto')
const { Readable } = require('node:stream')
const { setTimeout: wait } = require('node:timers/promises')
const { kinds } = require('../captures/kinds')
const { partKey, recordKey } = require('./object-keys')

/** Delay after the first failure; it doubles with each further one. */
const FIRST_DELAY_MS = 1000
const MOST_DELAY_MS = 300_000
/**
 * Upper bound of attempts for one capture. While the storage is away, they take about two hours.
 */
const MOST_ATTEMPTS = 40
/** Queue limit; the oldest capture is dropped from the queue first, and stays in the store. */
const MOST_WAITING = 500
/** Time that a stopping exporter waits for the queue. A pod is deleted 30 s after its SIGTERM. */
const STOP_WITHIN_MS = 5000

/** Outcomes of a capture. @type {readonly ['shipped', 'failed', 'dropped']} */
const OUTCOMES = Object.freeze(['shipped', 'failed', 'dropped'])

/** Error for a capture that was deleted before it was sent. */
class GoneError extends Error {}

/**
 * @typedef {import('../captures/captures').Capture} Capture
 * @typedef {{ capture: Capture, attempts: number, sent: Set<string> }} Entry sent: names of the
 *   parts that are already sent
 */

/**
 * Sends captures one after the other: first the parts, then the record. Sent captures are marked in
 * the store, so that a later exporter continues with the others.
 */
class Shipper {
  #captures
  #send
  #shipsSnapshots
  #onFailure
  #delay
  /** @type {Entry[]} */
  #waiting = []
  /** Number of failures since the last success. */
  #failures = 0
  /** @type {Promise<void> | undefined} */
  #run
  #over = new AbortController()
  #stopping = false
  /** Number of sent bytes. */
  bytes = 0
  /** @type {Map<string, number>} */
  counts = new Map(OUTCOMES.map(outcome => [outcome, 0]))

  /**
   * @param {object} options
   * @param {Pick<import('../captures/captures').Captures, 'get' | 'read' | 'markShipped'>}
   *   options.captures
   * @param {import('./send').Send} options.send
   * @param {boolean} [options.shipsSnapshots] true to send heap snapshots, too
   * @param {(message: string, fields: { capture: string, target: string }) => void}
   *   options.onFailure called for the first of consecutive failures, and when a capture is
   *   abandoned
   * @param {(failures: number) => number} [options.delay] returns the ms before the next attempt
   */
  constructor ({ captures, send, shipsSnapshots = false, onFailure, delay = delayAfter }) {
    this.#captures = captures
    this.#send = send
    this.#shipsSnapshots = shipsSnapshots
    this.#onFailure = onFailure
    this.#delay = delay
  }

  /** Number of captures that are not sent yet. */
  get waiting () {
    return this.#waiting.length
  }

  /**
   * @param {Capture} capture ignored unless it is complete, not sent yet, and may be sent
   */
  add (capture) {
    const { kind, state, shippedUnixMs } = capture
    const isAllowed = kind !== 'heap_snapshot' || this.#shipsSnapshots
    if (state !== 'done' || shippedUnixMs || !isAllowed || this.#over.signal.aborted) return
    this.#waiting.push({ capture, attempts: 0, sent: new Set() })
    if (this.#waiting.length > MOST_WAITING) {
      this.#waiting.shift()
      this.#count('dropped')
    }
    this.#run ??= this.#shipAll().finally(() => { this.#run = undefined })
  }

  /** Stops. It waits a few seconds for the queue, unless the last attempt failed. */
  async stop () {
    this.#stopping = true
    if (this.#failures === 0 && this.#run) {
      const within = wait(STOP_WITHIN_MS, undefined, { signal: this.#over.signal, ref: false })
      await Promise.race([this.#run, within.catch(() => {})])
    }
    this.#over.abort()
    await this.#run
  }

  /** @param {typeof OUTCOMES[number]} outcome */
  #count (outcome) {
    this.counts.set(outcome, (this.counts.get(outcome) ?? 0) + 1)
  }

  async #shipAll () {
    const { signal } = this.#over
    for (let [entry] = this.#waiting; entry && !signal.aborted; [entry] = this.#waiting) {
      const error = await this.#ship(entry)
      if (signal.aborted) return
      // The queue limit may have dropped the capture meanwhile.
      const isWaiting = this.#waiting[0] === entry
      if (isWaiting) this.#waiting.shift()
      if (!error) continue
      if (!isWaiting || this.#settle(entry, error)) continue
      this.#waiting.push(entry)
      if (this.#stopping) return
      await wait(this.#delay(this.#failures), undefined, { signal, ref: false }).catch(() => {})
    }
  }

  /**
   * @param {Entry} entry
   * @param {Error & { isFinal?: boolean }} error error of the last attempt
   * @returns {boolean} false if another attempt follows
   */
  #settle (entry, error) {
    const { id, target } = entry.capture
    if (error instanceof GoneError) {
      this.#count('dropped')
      return true
    }
    this.#failures++
    entry.attempts++
    const isOver = error.isFinal === true || entry.attempts >= MOST_ATTEMPTS
    if (isOver) this.#count('failed')
    if (isOver || this.#failures === 1) {
      const next = isOver
        ? `given up after ${entry.attempts} attempts`
        : 'the exporter will try ' +
        'again'
      this.#onFailure(`capture not sent, ${next}: ${error.message}`, { capture: id, target })
    }
    return isOver
  }

  /**
   * @param {Entry} entry
   * @returns {Promise<Error | undefined>}
   */
  async #ship ({ capture, sent }) {
    const { signal } = this.#over
    try {
      for (const { part, bytes, sha256 } of capture.parts) {
        if (sent.has(part)) continue
        const { mediaType } = kinds[capture.kind]
        const open = () => this.#open(capture, part)
        await this.#send(partKey(capture, part), { bytes, sha256, mediaType, open }, signal)
        sent.add(part)
        this.bytes += bytes
      }
      const record = Buffer.from(JSON.stringify(capture))
      await this.#send(recordKey(capture), {
        bytes: record.length,
        sha256: createHash('sha256').update(record).digest('hex'),
        mediaType: 'application/json',
        open: () => Readable.from([record])
      }, signal)
      this.bytes += record.length
    } catch (error) {
      return /** @type {Error} */ (error)
    }
    this.#failures = 0
    this.#count('shipped')
    try {
      this.#captures.markShipped(capture.id)
    } catch {} // The disk is full: the capture is sent again after a restart, under the same keys.
  }

  /**
   * @param {Capture} capture
   * @param {string} part
   * @throws {GoneError}
   */
  #open (capture, part) {
    const stream = this.#captures.get(capture.id) && this.#captures.read(capture, part)
    if (!stream) throw new GoneError('the capture was deleted')
    return stream
  }
}

/**
 * Delay before the next attempt. It doubles with each failure, and is random within its second
 * half, so that exporters that lost the same storage do not all return to it at once.
 * @param {number} failures number of failures, from 1
 * @returns {number} ms
 */
function delayAfter (failures) {
  const most = Math.min(MOST_DELAY_MS, FIRST_DELAY_MS * 2 ** (failures - 1))
  return most * (0.5 + 0.5 * Math.random())
}

module.exports = { Shipper, MOST_ATTEMPTS, OUTCOMES, delayAfter }
