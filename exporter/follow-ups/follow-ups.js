'use strict'

const { EventEmitter } = require('node:events')
const { pasteLine } = require('@memwatch/engine/fixes/paste-line')
const { findCase } = require('@memwatch/engine/verdicts/case')
const {
  findAttempts, judgeFollowUp, findLevel, describeLost, ENDINGS
} = require('@memwatch/engine/verdicts/follow-up')
const { FollowUpReadings } = require('@memwatch/engine/verdicts/follow-up-readings')

/** Time between readings, in the time of the target. */
const EVERY_SECONDS = 10
/** Upper bounds of retained advice and ended follow-ups; the oldest are removed first. */
const MAX_ADVICE = 500
const MAX_ENDINGS = 200
const MEASURED = 'Being measured: the comparison needs as much work as the process did before.'

/**
 * @typedef {import('@memwatch/engine/history/target').Target} Target
 * @typedef {import('@memwatch/engine/verdicts/follow-up').Advice} Advice
 * @typedef {import('@memwatch/engine/verdicts/follow-up').Attempt} Attempt
 * @typedef {import('@memwatch/engine/verdicts/follow-up').FollowUp} FollowUp
 * @typedef {import('@memwatch/engine/verdicts/follow-up').Reached} Reached
 *
 * @typedef {object} Followed state of a process that is followed up
 * @property {number} nextSeconds uptime of the next reading
 * @property {FollowUpReadings} readings
 * @property {Map<string, Reached>} confirmed work and age of the process when a finding was first
 *   seen, by diagnosis
 * @property {{ attempt: Attempt, followUp: FollowUp }[] | undefined} open its open follow-ups;
 *   undefined before the first frame
 * @property {string | null | undefined} release its release; undefined before it is read
 */

/**
 * Follows up every fix. It remembers the advice for each workload, recognises a process that was
 * started with the advised change, and decides if the change had its effect. Events: `advised`
 * (advice) when a process with a finding ended; `followed` (target, follow-up) when a follow-up
 * ends.
 */
class FollowUps extends EventEmitter {
  #targets
  #options
  /** @type {WeakMap<Target, Followed>} */
  #followed = new WeakMap()
  /** Advice for ended processes, by workload, thread and diagnosis. @type {Map<string, Advice>} */
  #advised = new Map()
  /** Ended follow-ups, oldest first. @type {FollowUp[]} */
  #ended = []
  /** Counts of endings by diagnosis. @type {Map<string, Map<string, number>>} */
  counts = new Map()
  /**
   * Newest measured effect relative to the predicted one, by diagnosis.
   * @type {Map<string, number>}
   */
  effects = new Map()

  /**
   * @param {object} options
   * @param {() => Target[]} options.targets watched targets
   * @param {number} [options.everySeconds] seconds between readings
   * @param {number} [options.settleSeconds] see FollowUpReadings
   * @param {number} [options.leastReadings] least number of readings for a comparison
   * @param {typeof import('./release').readRelease} [options.releaseOf]
   * @param {typeof import('./release').readParents} [options.parentsOf]
   */
  constructor ({ targets, ...options }) {
    super()
    this.#targets = targets
    this.#options = options
  }

  /** Ended follow-ups, newest first. @returns {FollowUp[]} */
  get all () {
    return this.#ended.toReversed()
  }

  /**
   * @param {Target} target after a frame
   * @param {{ reads?: boolean }} [options] reads: false to take no readings
   */
  framed (target, { reads = true } = {}) {
    const uptime = target.frame?.uptimeSeconds
    const followed = this.#followedOf(target)
    if (uptime === undefined || uptime < followed.nextSeconds) return
    followed.nextSeconds = uptime + (this.#options.everySeconds ?? EVERY_SECONDS)
    followed.open ??= this.#openOf(target)
    const advised = advisedOn(target)
    const now = reachedBy(target)
    for (const { diagnosis } of advised) {
      if (!followed.confirmed.has(diagnosis)) followed.confirmed.set(diagnosis, now)
    }
    // A leak may be confirmed only seconds before its process dies, so readings begin when it is
    // suspected.
    const read = [
      ...foundOn(target), ...followed.open.map(({ attempt }) => ({ fix: [attempt.fix] }))
    ]
    const predicted = read.flatMap(({ fix }) => fix.flatMap(one => one.predicted))
    if (reads && read.length > 0) followed.readings.add(target, predicted)
    // The release can be read only while the process lives.
    if (advised.length > 0) followed.release ??= this.#releaseOf(target)
    this.#judge(target, followed, now)
  }

  /** Retains the advice for an ended process. @param {Target} target */
  ended (target) {
    for (const advice of this.#adviceOf(target)) {
      this.restoreAdvice(advice)
      this.emit('advised', advice)
    }
  }

  /** @param {Advice} advice advice, also from a previous exporter */
  restoreAdvice (advice) {
    const key = JSON.stringify([advice.workload, advice.thread, advice.diagnosis])
    this.#advised.delete(key)
    this.#advised.set(key, advice)
    if (this.#advised.size > MAX_ADVICE) this.#advised.delete(/** @type {string} */ (this.#advised.keys().next().value))
  }

  /** @param {FollowUp} followUp ended follow-up, also from a previous exporter */
  restore (followUp) {
    const { diagnosis, ending, effectRatio } = followUp
    if (ending === null) return
    this.#ended.push(followUp)
    if (this.#ended.length > MAX_ENDINGS) this.#ended.shift()
    const counts = this.counts.get(diagnosis) ?? new Map(ENDINGS.map(name => [name, 0]))
    this.counts.set(diagnosis, counts.set(ending, (counts.get(ending) ?? 0) + 1))
    if (effectRatio !== null) this.effects.set(diagnosis, effectRatio)
  }

  /** @param {Target} target */
  #followedOf (target) {
    let followed = this.#followed.get(target)
    if (!followed) {
      followed = {
        nextSeconds: -Infinity,
        readings: new FollowUpReadings(this.#options),
        confirmed: new Map(),
        open: undefined,
        release: undefined
      }
      this.#followed.set(target, followed)
    }
    return followed
  }

  /**
   * Follow-ups that begin with a process. They concern advice for ended processes of its workload,
   * and for living processes that run without the change.
   * @param {Target} target
   */
  #openOf (target) {
    const { name: workload, startedAtUnixMs } = target.hello
    const thread = kindOf(target)
    const advised = [
      ...this.#advised.values(),
      ...this.#targets().filter(other => other !== target && other.hello.name === workload)
        .flatMap(other => this.#adviceOf(other))
    ].filter(advice => advice.workload === workload && advice.thread === thread &&
      advice.confirmedAtUnixMs < startedAtUnixMs)
    if (advised.length === 0) return []
    const parents = (this.#options.parentsOf ?? require('./release').readParents)(target.hello)
    const setup = { ...this.#setupOf(target), release: this.#releaseOf(target), parents }
    return findAttempts(advised, setup)
      .map(attempt => ({ attempt, followUp: beginFollowUp(target, attempt) }))
      .filter(({ attempt, followUp }) => !this.#isKnown(attempt, followUp))
      .map(one => {
        if (one.attempt.arrival.kind !== 'released') {
          findCase(target).followUps.set(one.followUp.diagnosis, one.followUp)
        }
        return one
      })
  }

  /**
   * True if a process was only restarted with a change that was already followed up. A change that
   * is lost for another reason is a new attempt; the text of the ending contains the reason.
   * @param {Attempt} attempt
   * @param {FollowUp} followUp
   */
  #isKnown ({ advice, arrival }, { target, thread, diagnosis, change }) {
    return this.#ended.some(ended =>
      ended.target === target && ended.thread === thread && ended.diagnosis === diagnosis &&
      ended.change === change && (ended.endedUnixMs ?? 0) > advice.confirmedAtUnixMs &&
      (arrival.kind === 'lost'
        ? ended.text === describeLost(arrival)
        : ended.ending !== 'did_not_arrive'))
  }

  /**
   * @param {Target} target
   * @param {Followed} followed
   * @param {Reached} now
   */
  #judge (target, followed, now) {
    const { leastReadings } = this.#options
    followed.open = followed.open?.filter(({ attempt, followUp }) => {
      const { verdicts, followUps } = findCase(target)
      const state = verdicts.find(({ diagnosis }) => diagnosis === followUp.diagnosis)?.state
      const readings = followed.readings.all
      const judged = judgeFollowUp(attempt,
        { readings, now, state: state ?? 'unknown', leastReadings })
      if (!judged) return true
      const ended = { ...followUp, ...judged, endedUnixMs: target.frame?.atUnixMs ?? 0 }
      followUps.set(ended.diagnosis, ended)
      this.restore(ended)
      this.emit('followed', target, ended)
      return false
    })
  }

  /**
   * Present advice for a process.
   * @param {Target} target
   * @returns {Advice[]}
   */
  #adviceOf (target) {
    const followed = this.#followed.get(target)
    const window = target.window()
    if (!followed || !window || !target.frame) return []
    const { startedAtUnixMs, name } = target.hello
    const atUnixMs = target.frame.atUnixMs
    const readings = followed.readings.all
    const setup = this.#setupOf(target)
    return advisedOn(target).map(({ diagnosis, title, fix, confirmedAfterSeconds }) => ({
      id: `${atUnixMs}-${target.hello.pid}-${target.hello.threadId}-${diagnosis}`,
      workload: name,
      thread: kindOf(target),
      target: target.name,
      diagnosis,
      title,
      atUnixMs,
      confirmedAtUnixMs: startedAtUnixMs + 1000 * (confirmedAfterSeconds ?? 0),
      fixes: fix,
      setup,
      readings: [...readings],
      confirmed: followed.confirmed.get(diagnosis) ?? reachedBy(target),
      levelled: findLevel(window, readings)
    }))
  }

  /**
   * @param {Target} target
   * @returns {import('@memwatch/engine/verdicts/arrival').Setup}
   */
  #setupOf (target) {
    const { hello, values } = target
    const { nodeOptions, execArgv, mallocEnv, libc, allocator, allocatorPath } = hello
    return {
      nodeOptions,
      execArgv,
      mallocEnv,
      libc,
      allocator,
      ...(allocatorPath !== undefined && { allocatorPath }),
      node: hello.node,
      pointerCompression: hello.pointerCompression,
      memoryLimitBytes: values.containerLimitBytes ?? hello.constrainedBytes ?? null,
      release: this.#followed.get(target)?.release ?? null,
      parents: []
    }
  }

  /** @param {Target} target */
  #releaseOf ({ hello }) {
    return (this.#options.releaseOf ?? require('./release').readRelease)(hello)
  }
}

/** @param {Target} target */
const kindOf = ({ thread }) => thread === 'main' ? 'main' : 'worker'

/** Confirmed and suspected verdicts that have a fix. @param {Target} target */
const foundOn = target => findCase(target).verdicts
  .filter(({ state, fix }) => (state === 'confirmed' || state === 'suspected') && fix.length > 0)

/** Confirmed verdicts that have a fix. @param {Target} target */
const advisedOn = target => foundOn(target).filter(({ state }) => state === 'confirmed')

/**
 * @param {Target} target
 * @returns {Reached}
 */
const reachedBy = target => ({
  workSeconds: target.window()?.last('workSeconds') ?? 0,
  ageSeconds: target.frame?.uptimeSeconds ?? 0
})

/**
 * @param {Target} target
 * @param {Attempt} attempt
 * @returns {FollowUp}
 */
function beginFollowUp ({ name, thread, hello }, { advice, fix }) {
  return {
    id: `${hello.startedAtUnixMs}-${hello.pid}-${hello.threadId}-${advice.diagnosis}`,
    workload: advice.workload,
    target: name,
    thread,
    pid: hello.pid,
    diagnosis: advice.diagnosis,
    title: advice.title,
    fix: fix.title,
    change: pasteLine(fix),
    advisedUnixMs: advice.confirmedAtUnixMs,
    startedAtUnixMs: hello.startedAtUnixMs,
    ending: null,
    endedUnixMs: null,
    text: MEASURED,
    effectRatio: null,
    outcomes: []
  }
}

module.exports = { FollowUps }
