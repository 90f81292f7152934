'use strict'

const { CommandError } = require('../commands/commands')
const { processOf } = require('@memwatch/engine/history/identity')
const { figures, signalsOf } = require('@memwatch/engine/signals/index')
const { findCase, thrashes } = require('@memwatch/engine/verdicts/case')
const { kinds } = require('./kinds')
const { findThread, planCapture, planEarlyProfile } = require('./plan-capture')
const { defaultRules } = require('./rules')
const { limits: PINNING } = require('@memwatch/engine/diagnoses/buffer-pool-pinning')

/**
 * Upper bound of waiting captures: in a longer queue, targets would change before their turn comes.
 */
const MOST_WAITING = 20
/**
 * Interval at which signals of rules are read, in the target's own time. It equals the interval of
 * evaluations.
 */
const SIGNALS_EVERY_SECONDS = 2
/**
 * Age at death above which the death predicts nothing about the first minutes of the next process.
 */
const MOST_LIFE_SECONDS = 1200
/** Upper bound of attempts at one capture, and the time between two of them. */
const MOST_ATTEMPTS = 2
const RETRY_AFTER_MS = 60_000
/** Errors that a busy machine may cause. */
const MAY_PASS = new Set(['failed', 'no_answer'])
/**
 * Growth of RSS, and straightness of its line, from which a heap profile begins before a diagnosis
 * is suspected. It is read only if the suspicion follows, so it runs no full GC in a healthy app.
 */
const GROWTH = { riseBytes: 16 * 2 ** 20, fit: 0.9 }
const GROWTH_EVERY_SECONDS = 4
const EARLY_EVERY_SECONDS = 3600
/** Diagnoses of such growth. */
const OF_GROWTH = new Set(['js-heap-leak', 'native-memory-leak'])
/** Age from which much memory in Buffers counts as retained, unless they pile up. */
const RETAINED_SECONDS = 30
/** Time between two attempts to count slices, longer than in the agent. */
const SLICES_EVERY_SECONDS = 660
/** Start and duration of the profile of the next process, as shares of the dead process's age. */
const FROM_SHARE = 0.5
const LENGTH_SHARE = 0.25
/**
 * Upper bound of names whose deaths are remembered; the name with the oldest death is removed
 * first.
 */
const MOST_DEATHS = 1000

/**
 * @typedef {import('./rules').CaptureRule} CaptureRule
 * @typedef {import('./plan-capture').Target} Target
 * @typedef {import('./plan-capture').Found} Found
 * @typedef {Parameters<import('./captures').Captures['request']>[1]} Options
 * @typedef {{ rule: CaptureRule, target: Target, found: Found | undefined, options: Options,
 *   attempt: number, isLast: boolean | undefined }} Wish
 */

/**
 * May slices keep much memory alive that was not counted: of the Buffer pool, of Buffers that pile
 * up, or of any Buffers if the app may pause for full GCs?
 * @param {Target} target
 */
function mayPin (target) {
  const { arrayBuffersBytes = 0, rssBytes = 0, bufferSlabsCountedBytes } = target.values
  const stateOf = (/** @type {string} */ id) =>
    findCase(target).verdicts.find(({ diagnosis }) => diagnosis === id)?.state ?? 'unknown'
  const isMuch = arrayBuffersBytes >= PINNING.arrayBuffersFloorBytes &&
    arrayBuffersBytes >= PINNING.arrayBuffersShareRatio * rssBytes
  const leaks = isMuch && ['suspected', 'confirmed'].includes(stateOf('native-memory-leak'))
  if (bufferSlabsCountedBytes !== undefined) {
    return leaks && bufferSlabsCountedBytes < PINNING.countedShareRatio * arrayBuffersBytes
  }
  const mayPause = target.hello.commands?.includes('force_gc') &&
    (target.frame?.uptimeSeconds ?? 0) >= RETAINED_SECONDS
  return stateOf('buffer-pool-pinning') === 'suspected' || leaks || (isMuch && mayPause)
}

/** @param {unknown} error */
function ignoreRefusal (error) {
  if (!(error instanceof CommandError)) throw error
}

/** @param {CaptureRule} rule */
const isUrgent = ({ when }) => 'runwayBelowSeconds' in when

/**
 * @param {import('./rules').ByDiagnosis} when
 * @param {Found} found
 */
const isMet = (when, { state }) => state === 'confirmed' || state === when.state

/** @param {Wish} wish */
const secondsOf = ({ rule, options: { seconds }, isLast }) =>
  isLast ? Infinity : seconds ?? kinds[rule.what].seconds

/** @param {Target} target */
const keyOf = ({ name, thread }) => JSON.stringify([name, thread])

/**
 * Captures that the exporter starts by itself, as its rules say. They run one at a time, because
 * simultaneous problems of many targets usually have one cause. Only the capture of a process that
 * will soon reach its limit does not wait for the others.
 *
 * A capture waits while the exporter is overloaded, while the process or this class is busy with
 * another one, while a plan waits for readings (plan-capture.js), and 60 s after a failure. It is
 * dropped if its rule ran within its `everySeconds`, if 20 others wait, or if the verdict no longer
 * meets the rule. Before all that, a verdict waits for its evaluation (verdicts/evaluate.js), and
 * for agreement (verdicts/settle.js). Heap snapshots that V8 wrote are analysed one after another
 * (deaths/death-snapshots.js).
 */
class AutomaticCaptures {
  #captures
  #now
  #isFree
  #onRefused
  #targets
  #rules
  #runwayRules
  #signalRules
  #growthRules
  /**
   * Time of the last capture of each target, by rule.
   * @type {WeakMap<Target, Map<string, number>>}
   */
  #askedAt = new WeakMap()
  /**
   * Rules about diagnoses that are met, but whose captures were not possible yet: the exporter was
   * overloaded, the capture failed, or has to wait. Each with the number of its next attempt and
   * the earliest time of it.
   * @type {WeakMap<Target, Map<CaptureRule, { attempt: number, fromMs: number }>>}
   */
  #open = new WeakMap()
  /**
   * Uptime since which the condition of a rule about a signal holds, and uptime of the last
   * reading, by rule.
   * @type {WeakMap<Target, { readAtSeconds: number, since: Map<string, number> }>}
   */
  #signals = new WeakMap()
  /**
   * Last death by name and thread, with the decision to capture the next process.
   * @type {Map<string, { rule: CaptureRule, lifeSeconds: number, atMs: number, isOpen: boolean }>}
   */
  #deaths = new Map()
  /** @type {Wish[]} */
  #waiting = []
  /** Running captures: at most one urgent capture and one other. @type {Set<Wish>} */
  #running = new Set()

  /** Uptime from which slices may be counted again. @type {WeakMap<Target, number>} */
  #slicesFromSeconds = new WeakMap()
  /** Uptime from which growth is checked again. @type {WeakMap<Target, number>} */
  #growthFromSeconds = new WeakMap()

  /**
   * @param {Pick<import('./captures').Captures, 'request' | 'sampleHeap' |
   *   'countSlices'>} captures
   * @param {{ rules?: readonly CaptureRule[], now?: () => number, isFree?: () => boolean,
   *   onRefused?: (target: Target, error: CommandError, diagnosis?: string) => void,
   *   targets?: () => readonly Target[] }} [options] now: ms; isFree: false while the exporter is
   *   overloaded and requests no captures; onRefused: called if the agent accepts no captures;
   *   targets: all watched targets
   */
  constructor (captures, {
    rules = defaultRules,
    now = () => performance.now(),
    isFree = () => true,
    onRefused = () => {},
    targets = () => []
  } = {}) {
    this.#captures = captures
    this.#now = now
    this.#isFree = isFree
    this.#onRefused = onRefused
    this.#targets = targets
    this.#rules = rules
    this.#runwayRules = rules.filter(isUrgent)
    this.#signalRules = rules.filter(({ when }) => 'signal' in when)
    this.#growthRules = rules.filter(({ when, what }) =>
      what === 'heap_profile' && 'diagnosis' in when && OF_GROWTH.has(when.diagnosis))
  }

  /**
   * Handles a diagnosis that changed its state.
   * @param {Target} target
   * @param {Found} found
   */
  changed (target, found) {
    const open = this.#open.get(target) ?? new Map()
    this.#open.set(target, open)
    for (const rule of this.#rules) {
      const { when } = rule
      if (!('diagnosis' in when) || when.diagnosis !== found.diagnosis) continue
      if (!isMet(when, found)) open.delete(rule)
      else if (!open.has(rule)) open.set(rule, { attempt: 1, fromMs: this.#now() })
    }
    if (!this.#isFree()) return
    this.#checkRunway(target)
    this.#checkOpen(target, [found])
    this.#next()
  }

  /**
   * Handles a frame.
   * @param {Target} target
   */
  seen (target) {
    if (!this.#isFree()) return
    this.#checkRunway(target)
    this.#checkOpen(target, findCase(target).verdicts)
    this.#checkSignals(target)
    this.#checkGrowth(target)
    this.#checkSlices(target)
    if (this.#deaths.size > 0) this.#checkSuccessor(target)
    this.#next()
  }

  /**
   * @param {Target} target
   * @param {readonly Found[]} verdicts
   */
  #checkOpen (target, verdicts) {
    for (const [rule, { attempt, fromMs }] of this.#open.get(target) ?? []) {
      const when = /** @type {import('./rules').ByDiagnosis} */ (rule.when)
      const found = verdicts.find(({ diagnosis }) => diagnosis === when.diagnosis)
      if (!found || !isMet(when, found) || this.#now() < fromMs) continue
      const hasProfile =
        findCase(target).suspects.get(when.diagnosis)?.kind === 'heap_profile'
      if (rule.names === 'inner' && !hasProfile) continue
      // A heap profile may name a line of the app, which is better than a handler.
      if (rule.names === 'handlers' && !findCase(target).captured.has('heap_profile')) continue
      if (this.#wish(rule, target, found, attempt)) this.#open.get(target)?.delete(rule)
    }
  }

  /** @param {Target} target */
  #checkSuccessor (target) {
    const death = this.#deaths.get(keyOf(target))
    const uptimeSeconds = target.frame?.uptimeSeconds ?? 0
    if (!death?.isOpen || uptimeSeconds < FROM_SHARE * death.lifeSeconds) return
    death.isOpen = false
    const seconds = Math.max(1, LENGTH_SHARE * death.lifeSeconds)
    const { rule } = death
    this.#wish({ ...rule, seconds: Math.min(rule.seconds ?? Infinity, seconds) }, target)
  }

  /**
   * Handles the death of a process.
   * @param {import('../deaths/deaths').Death} death
   * @param {Target} target
   */
  died ({ reason }, target) {
    const key = keyOf(target)
    const last = this.#deaths.get(key)
    for (const rule of this.#rules) {
      const { when, everySeconds } = rule
      if (!('death' in when) || !when.death.includes(reason)) continue
      if (target.lastSeconds > MOST_LIFE_SECONDS) return
      if (last && this.#now() - last.atMs < 1000 * everySeconds) return
      const death = { rule, lifeSeconds: target.lastSeconds, atMs: this.#now(), isOpen: true }
      this.#deaths.delete(key)
      this.#deaths.set(key, death)
      const [oldest] = this.#deaths.keys()
      if (this.#deaths.size > MOST_DEATHS) this.#deaths.delete(oldest)
      return
    }
  }

  /** @param {Target} target */
  #checkRunway (target) {
    /** @type {import('@memwatch/engine/verdicts/evaluate').Verdict | undefined} */
    let soonest
    for (const verdict of findCase(target).verdicts) {
      const { secondsLeft } = verdict
      const isSooner = secondsLeft !== null && secondsLeft < (soonest?.secondsLeft ?? Infinity)
      if (isSooner) soonest = verdict
    }
    if (!soonest) return
    for (const rule of this.#runwayRules) {
      const { runwayBelowSeconds } = /** @type {import('./rules').ByRunway} */ (rule.when)
      if ((soonest.secondsLeft ?? Infinity) < runwayBelowSeconds) {
        this.#wish(rule, target, soonest)
      }
    }
  }

  /** @param {Target} target */
  #checkSignals (target) {
    if (this.#signalRules.length === 0) return
    const nowSeconds = target.frame?.uptimeSeconds ?? 0
    const known = this.#signals.get(target) ?? { readAtSeconds: -Infinity, since: new Map() }
    this.#signals.set(target, known)
    const window = target.window()
    if (!window || nowSeconds - known.readAtSeconds < SIGNALS_EVERY_SECONDS) return
    known.readAtSeconds = nowSeconds
    const signals = signalsOf(window)
    for (const rule of this.#signalRules) {
      const when = /** @type {import('./rules').BySignal} */ (rule.when)
      const value = figures[when.signal].read(signals)
      const holds = value !== null && value > (when.above ?? -Infinity) &&
        value < (when.below ?? Infinity)
      if (!holds) {
        known.since.delete(rule.name)
        continue
      }
      const since = known.since.get(rule.name) ?? nowSeconds
      known.since.set(rule.name, since)
      if (nowSeconds - since >= when.forSeconds) this.#wish(rule, target)
    }
  }

  /**
   * Begins the profile of a growing process before the suspicion: when it follows, the lines that
   * allocate what grew are known at once.
   * @param {Target} target
   */
  #checkGrowth (target) {
    const nowSeconds = target.frame?.uptimeSeconds ?? 0
    if (nowSeconds < (this.#growthFromSeconds.get(target) ?? 0)) return
    this.#growthFromSeconds.set(target, nowSeconds + GROWTH_EVERY_SECONDS)
    if (!target.hello.commands?.includes('sample_heap')) return
    const { verdicts } = findCase(target)
    const isOpen = this.#growthRules.some(({ when }) => verdicts.some(({ diagnosis, state }) =>
      state === 'unknown' && 'diagnosis' in when && when.diagnosis === diagnosis))
    const window = isOpen ? target.window() : undefined
    if (!window) return
    const { rssTrend } = signalsOf(window)
    if (!rssTrend || rssTrend.rise < GROWTH.riseBytes || rssTrend.fit < GROWTH.fit) return
    this.#growthFromSeconds.set(target, nowSeconds + EARLY_EVERY_SECONDS)
    // Without it, the profile begins with the suspicion.
    this.#captures.sampleHeap(target, planEarlyProfile(target)).catch(ignoreRefusal)
  }

  /**
   * Counts slices if slabs of the Buffer pool stay alive, or if Buffers take much memory: only a
   * count tells slices of a few bytes from Buffers in use.
   * @param {Target} target
   */
  #checkSlices (target) {
    const nowSeconds = target.frame?.uptimeSeconds ?? 0
    const { commands } = target.hello
    const isTooSoon = nowSeconds < (this.#slicesFromSeconds.get(target) ?? 0)
    if (isTooSoon || !commands?.includes('count_slices') || !mayPin(target)) return
    this.#slicesFromSeconds.set(target, nowSeconds + SLICES_EVERY_SECONDS)
    this.#captures.countSlices(target).catch(error => {
      ignoreRefusal(error)
      // An app that was blocked for a while may answer later.
      if (error.code === 'no_answer') this.#slicesFromSeconds.delete(target)
    })
  }

  /**
   * @param {CaptureRule} rule whose condition is met
   * @param {Target} target
   * @param {Found} [found] verdict that caused the capture
   * @param {number} [attempt]
   * @returns {boolean} false if the capture is not possible yet
   */
  #wish (rule, target, found, attempt = 1) {
    const asked = this.#askedAt.get(target) ?? new Map()
    this.#askedAt.set(target, asked)
    const isKnown = [...this.#waiting, ...this.#running].some(other =>
      other.target === target && (other.rule.name === rule.name ||
        (other.rule.what === rule.what && isPlain(other.rule) && isPlain(rule))))
    const isRecent = attempt === 1 &&
      this.#now() - (asked.get(rule.name) ?? -Infinity) < 1000 * rule.everySeconds
    // A second attempt waits for another capture of the same kind, which may not explain this
    // diagnosis.
    if (isKnown) return attempt === 1
    if (isRecent) return true
    if (this.#waiting.length >= MOST_WAITING) return false
    // V8 runs a full GC for each reading. Only growth that is about to end the process is worth it.
    if (rule.what === 'heap_profile' && !isUrgent(rule) && thrashes(target)) return false
    const thread = findThread(target, found, this.#targets)
    const plan = planCapture(rule, thread, found)
    if (!plan) return false
    for (const other of this.#rules) {
      const { when, what } = other
      // The last profile of a leak, shortly before the limit, replaces the profiles requested for
      // the diagnosis of the leak.
      const isCovered = isUrgent(rule) && what === rule.what && 'diagnosis' in when &&
        when.diagnosis === found?.diagnosis
      if (!isCovered) continue
      asked.set(other.name, this.#now())
      this.#open.get(target)?.delete(other)
    }
    asked.set(rule.name, this.#now())
    const { name, names } = rule
    const { isLast = rule.isLast, ...given } = plan
    const options = {
      ...given, rule: name, diagnosis: found?.diagnosis, ...(names && { names })
    }
    this.#waiting.push({ rule, target, found, options, attempt, isLast })
    return true
  }

  #next () {
    for (const urgent of [true, false]) {
      const running = [...this.#running]
      if (running.some(({ rule }) => isUrgent(rule) === urgent)) continue
      // A process makes one capture at a time.
      const ready = this.#waiting.filter(({ rule, target: { hello } }) =>
        isUrgent(rule) === urgent &&
        !running.some(other => processOf(other.target.hello) === processOf(hello)))
      if (ready.length === 0) continue
      // The shortest first: a quick answer does not wait for a capture of two minutes.
      const wish = ready.reduce((best, next) => secondsOf(next) < secondsOf(best) ? next : best)
      this.#waiting.splice(this.#waiting.indexOf(wish), 1)
      this.#running.add(wish)
      this.#make(wish).finally(() => {
        this.#running.delete(wish)
        if (this.#isFree()) this.#next()
      })
    }
  }

  /** @param {Wish} wish */
  async #make (wish) {
    const { rule, target, found, options, attempt } = wish
    const { diagnosis = '' } = options
    const known = findCase(target).suspects.get(diagnosis)?.suspects.sites ?? []
    if (rule.isNeeded && !rule.isNeeded(known)) return
    // A pool may have replaced the worker while the capture waited.
    const thread = findThread(target, found, this.#targets)
    try {
      const { errorCode } = await this.#captures.request(thread, options).finished
      if (errorCode !== null && MAY_PASS.has(errorCode)) {
        this.#tryAgain(wish, { attempt: attempt + 1, afterMs: RETRY_AFTER_MS })
      }
    } catch (error) {
      if (!(error instanceof CommandError)) throw error
      if (error.code === 'busy') {
        // A process with another running capture is tried again.
        this.#askedAt.get(target)?.delete(rule.name)
        this.#tryAgain(wish, { attempt, afterMs: 0 })
      } else if (error.code === 'not_enabled') {
        this.#onRefused(target, error, options.diagnosis)
      }
    }
  }

  /**
   * @param {Wish} wish
   * @param {{ attempt: number, afterMs: number }} next
   */
  #tryAgain ({ rule, target }, { attempt, afterMs }) {
    if (!('diagnosis' in rule.when) || attempt > MOST_ATTEMPTS) return
    this.#open.get(target)?.set(rule, { attempt, fromMs: this.#now() + afterMs })
  }
}

/**
 * True if the capture of a rule may replace another one of its kind. A capture with isNeeded may be
 * omitted when its turn comes, and one with names may name nothing.
 * @param {CaptureRule} rule
 */
const isPlain = ({ isNeeded, names }) => !isNeeded && !names

module.exports = { AutomaticCaptures }
