'use strict'

const { ProtobufLogsSerializer } = require('@memwatch/otlp')
const { Told } = require('@memwatch/engine/verdicts/told')
const { deathEvent, followUpEvent, verdictEvent } = require('./events')
const { resourceOf } = require('./resource')
const { Sender } = require('./sender')

/** Time for which events are gathered, so that simultaneous events are sent together. */
const GATHER_MS = 1000
/** Limit of events that wait for a receiver; the oldest are dropped first. */
const MOST_WAITING = 1000
const MOST_AT_ONCE = 100

/** Sends changes of verdicts, deaths and ended follow-ups as log records with an event name. */
class EventsExport {
  #sender
  #around
  #outcomes
  #retryMs
  #now
  #told = new Told()
  /** @type {import('./events').LogRecord[]} */
  #waiting = []
  /** @type {NodeJS.Timeout | undefined} */
  #timer
  /** @type {Promise<void> | undefined} */
  #underWay

  /**
   * @param {object} options
   * @param {import('./settings').HttpOptions} options.http
   * @param {ReturnType<typeof import('./surroundings').surroundings>} options.around
   * @param {import('./outcomes').Outcomes} options.outcomes
   * @param {number} options.retryMs delay of the next attempt if the receiver is unreachable
   * @param {() => number} [options.now] Unix time in ms
   */
  constructor ({ http, around, outcomes, retryMs, now = Date.now }) {
    this.#sender = new Sender({ http, readAnswer: ProtobufLogsSerializer.deserializeResponse })
    this.#around = around
    this.#outcomes = outcomes
    this.#retryMs = retryMs
    this.#now = now
  }

  /**
   * @param {import('@memwatch/engine/history/target').Target} target
   * @param {import('@memwatch/engine/verdicts/evaluate').Verdict} verdict
   */
  changed (target, verdict) {
    const change = this.#told.change(target, verdict)
    if (change) {
      this.#add(
        verdictEvent(verdict, change.was, {
          resource: resourceOf(target, this.#around),
          nowUnixMs: this.#now()
        })
      )
    }
  }

  /**
   * @param {import('@memwatch/engine/history/target').Target} target
   * @param {import('../deaths/deaths').Death} death
   */
  died (target, death) {
    this.#add(
      deathEvent(death, { resource: resourceOf(target, this.#around), nowUnixMs: this.#now() })
    )
  }

  /**
   * @param {import('@memwatch/engine/history/target').Target} target
   * @param {import('@memwatch/engine/verdicts/follow-up').FollowUp} followUp
   */
  followed (target, followUp) {
    this.#add(followUpEvent(followUp, {
      resource: resourceOf(target, this.#around),
      nowUnixMs: this.#now()
    }))
  }

  /** Sends the waiting events. */
  export () {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#underWay ??= this.#sendAll().finally(() => { this.#underWay = undefined })
    return this.#underWay
  }

  stop () {
    clearTimeout(this.#timer)
    this.#outcomes.add('dropped', this.#waiting.length)
    this.#waiting = []
    this.#sender.stop()
  }

  /** @param {import('./events').LogRecord} record */
  #add (record) {
    this.#waiting.push(record)
    this.#bound()
    this.#later(GATHER_MS)
  }

  #bound () {
    const tooMany = this.#waiting.length - MOST_WAITING
    if (tooMany > 0) this.#outcomes.add('dropped', this.#waiting.splice(0, tooMany).length)
  }

  /** @param {number} ms */
  #later (ms) {
    if (!this.#underWay) this.#timer ??= setTimeout(() => this.export(), ms).unref()
  }

  async #sendAll () {
    while (this.#waiting.length > 0) {
      const records = this.#waiting.splice(0, MOST_AT_ONCE)
      const request = /** @type {Uint8Array} */ (ProtobufLogsSerializer.serializeRequest(records))
      const sent = await this.#sender.send([request])
      const isOver = sent.outcome !== 'failed' || sent.final
      this.#outcomes.sent(sent, isOver ? records.length : 0)
      if (isOver) continue
      // An unreachable receiver may return, so events wait in order, up to a limit.
      this.#waiting.unshift(...records)
      this.#bound()
      this.#timer = setTimeout(() => this.export(), this.#retryMs).unref()
      return
    }
  }
}

module.exports = { EventsExport }
