'use strict'

const { EventEmitter, once } = require('node:events')
const { steadyUnixMs } = require('../clock')
const { processOf } = require('@memwatch/engine/history/identity')
const { LATE_INTERVALS, SILENT_INTERVALS, countIntervals } = require('@memwatch/engine/history/silence')
const { Witness } = require('../process/witness')
const { lastMoments, oomKillsSince } = require('./last-moments')
const { explainDeath } = require('./explain')
const { advise } = require('./advise')
const { deathOf } = require('./deaths')
const { Watched } = require('./watched')

/** Interval at which silent targets are polled. */
const LOOK_EVERY_MS = 1000
/**
 * Time in which a living agent reconnects. A blocked event loop alone does not close the
 * connection.
 */
const RETURN_WITHIN_MS = 5000
/** Longest interval between an agent's attempts to connect while the exporter is away. */
const FIND_WITHIN_MS = 45_000
/**
 * Delays of the polls of a dying process: the kernel closes its sockets a moment before the process
 * is gone.
 */
const DYING_LOOKS_MS = [0, 20, 100, 300]
/** Time limit for a parent to report its child's exit, after the child's connection ended. */
const TOLD_WITHIN_MS = 1000
/**
 * Time after a goodbye in which a process must end. If it is still alive then, another process sent
 * the goodbye, or the end was delayed.
 */
const LEAVE_WITHIN_MS = 30_000
/**
 * Upper bound of goodbyes that wait for the kernel's confirmation; beyond it the goodbye alone is
 * sufficient.
 */
const MOST_LEAVING = 64
/** Length of the history stored with a death. */
const LAST_MINUTES_SECONDS = 600

/**
 * Detects deaths. Events: `death` (death, lastMinutes, target, folders of its snapshots) once for
 * each process, and for each worker that ran out of heap; `alive` (id of the death) when a process
 * that was reported as dead reconnects, as after a network failure; `lives` (target) when the
 * kernel shows that a process is alive after its goodbye.
 */
class DeathWatch extends EventEmitter {
  #targets
  #now
  #witnessOf
  #overNetwork
  /** @type {Map<import('@memwatch/engine/history/target').Target, Watched>} */
  #watched = new Map()
  /**
   * Ids of the deaths of unwatched processes.
   * @type {WeakMap<import('@memwatch/engine/history/target').Target, string>}
   */
  #dead = new WeakMap()
  /** Processes that said goodbye and still exist in the kernel. @type {Set<Watched>} */
  #leaving = new Set()
  /**
   * Processes that no longer exist in the kernel.
   * @type {WeakSet<import('@memwatch/engine/history/target').Target>}
   */
  #gone = new WeakSet()
  /** Processes whose parent will report their exit. @type {Set<number>} */
  #awaited = new Set()
  /** @type {NodeJS.Timeout | undefined} */
  #timer
  #lookedAtMs = 0
  #stopped = false

  /**
   * @param {import('@memwatch/engine/history/targets').Targets} targets
   * @param {{ now?: () => number, witnessOf?: (hello:
   *   import('@memwatch/agent/protocol/frame').Hello) => Witness | null, overNetwork?: boolean }}
   *   [options] now: ms; overNetwork: the network may cause silence
   */
  constructor (targets, { now = steadyUnixMs, witnessOf = Witness.of, overNetwork = false } = {}) {
    super()
    this.#targets = targets
    this.#now = now
    this.#witnessOf = witnessOf
    this.#overNetwork = overNetwork
    targets.on('open', target => this.#open(target))
    targets.on('frame', target => this.#watched.get(target)?.hear())
    targets.on('back', target => this.#back(target))
    targets.on('vanish', (target, unreachable, unwatched = false) =>
      this.#vanish(target, { unreachable, unwatched })
    )
    targets.on('end', (target, cause) => this.#end(target, cause))
  }

  start () {
    this.#lookedAtMs = this.#now()
    this.#timer = setInterval(() => this.look(), LOOK_EVERY_MS)
    this.#timer.unref()
  }

  /** Records that the exporter itself closes connections from now on. */
  stop () {
    for (const watched of this.#leaving) this.#settle(watched)
    this.#stopped = true
    clearInterval(this.#timer)
  }

  /**
   * @param {import('@memwatch/engine/history/target').Target} target
   * @returns {string | undefined} id of its death; undefined for a living process
   */
  deathOf (target) {
    return this.#dead.get(target)
  }

  /** Resolves when no goodbye waits for the kernel's confirmation. */
  async settled () {
    while (this.#leaving.size > 0) await once(this, 'settled')
  }

  /**
   * State of a target's process, as the kernel shows it; undefined if the process was not visible
   * when the target was opened.
   * @param {import('@memwatch/engine/history/target').Target} target
   * @returns {'lives' | 'gone' | undefined}
   */
  sightOf (target) {
    const main =
      target.thread === 'main'
        ? target
        : this.#targets.all.find(
          ({ hello, thread }) => thread === 'main' && processOf(hello) === processOf(target.hello)
        )
    if (!main) return undefined
    if (this.#gone.has(main)) return 'gone'
    return this.#watched.get(main)?.checkProcess()
  }

  /**
   * Cause of a target's silence; undefined while it sends frames.
   * @param {import('@memwatch/engine/history/target').Target} target
   */
  silenceOf (target) {
    return this.#watched.get(target)?.silence
  }

  /** Announces a process whose exit the caller will report by `exited`. @param {number} pid */
  expectExit (pid) {
    this.#awaited.add(pid)
  }

  /**
   * @param {number} pid that was expected to end
   * @param {import('../process/witness').Exit} exit
   */
  exited (pid, exit) {
    this.#awaited.delete(pid)
    for (const watched of this.#watched.values()) {
      const { target } = watched
      if (target.hello.pid !== pid || target.thread !== 'main') continue
      watched.exit = exit
      if (watched.isLost) this.#settle(watched)
    }
  }

  /** Polls all silent targets. A timer calls this method once a second. */
  look () {
    const now = this.#now()
    const late = now - this.#lookedAtMs > 3 * LOOK_EVERY_MS
    this.#lookedAtMs = now
    // After a pause the exporter has to read waiting frames first: their senders are not silent.
    if (late) return
    for (const watched of this.#watched.values()) {
      if (watched.isLost) this.#pollLost(watched)
      else this.#pollConnected(watched, now)
    }
  }

  /** @param {import('@memwatch/engine/history/target').Target} target */
  #open (target) {
    // A process that sends another hello has not ended.
    for (const watched of this.#leaving) {
      if (processOf(watched.target.hello) === processOf(target.hello)) this.#stays(watched)
    }
    const witness = target.thread === 'main' ? this.#witnessOf(target.hello) : null
    this.#watched.set(target, new Watched(target, witness))
  }

  /** @param {import('@memwatch/engine/history/target').Target} target */
  #back (target) {
    const watched = this.#watched.get(target)
    if (watched) return watched.hear()
    this.#open(target)
    const id = this.#dead.get(target)
    this.#dead.delete(target)
    if (id !== undefined) this.emit('alive', id)
  }

  /**
   * @param {Watched} watched
   * @param {number} nowMs
   */
  #pollConnected (watched, nowMs) {
    const silentSeconds = (nowMs - watched.target.seenAtUnixMs) / 1000
    const intervals = countIntervals(silentSeconds, watched.target.hello)
    if (intervals <= LATE_INTERVALS) return
    watched.pollLate({
      everySeconds: LOOK_EVERY_MS / 1000,
      isSilent: intervals > SILENT_INTERVALS,
      overNetwork: this.#overNetwork
    })
  }

  /**
   * @param {import('@memwatch/engine/history/target').Target} target
   * @param {{ unreachable: boolean, unwatched: boolean }} how
   */
  #vanish (target, how) {
    const watched = this.#watched.get(target)
    if (!watched || this.#stopped) return
    watched.vanish({ sinceUnixMs: this.#now(), ...how })
    if (watched.exit) this.#settle(watched)
    else if (watched.witness && !how.unwatched) this.#pollDying(watched, 0)
  }

  /**
   * Polls a process several times while it may be dying, because its exit status is readable only
   * until its parent has waited for it.
   * @param {Watched} watched
   * @param {number} poll
   */
  #pollDying (watched, poll) {
    if (!watched.isLost) return
    if (watched.pollLost()) return this.#settleGone(watched)
    if (poll + 1 < DYING_LOOKS_MS.length) {
      setTimeout(
        () => this.#pollDying(watched, poll + 1),
        DYING_LOOKS_MS[poll + 1] - DYING_LOOKS_MS[poll]
      ).unref()
    }
  }

  /** @param {Watched} watched whose process is gone */
  #settleGone (watched) {
    const isAwaited = !watched.exit && this.#awaited.has(watched.target.hello.pid)
    if (!isAwaited || this.#lostForMs(watched) >= TOLD_WITHIN_MS) this.#settle(watched)
  }

  /** @param {Watched} watched a target without a connection */
  #pollLost (watched) {
    if (!watched.witness) {
      const waitMs = watched.loss?.unwatched ? FIND_WITHIN_MS : RETURN_WITHIN_MS
      if (this.#lostForMs(watched) >= waitMs) this.#settle(watched)
    } else if (watched.pollLost()) {
      this.#settleGone(watched)
    } else if (!watched.isLeaving) {
      watched.loseConnection()
    } else if (this.#lostForMs(watched) >= LEAVE_WITHIN_MS) {
      this.#stays(watched)
    }
  }

  /** @param {Watched} watched */
  #lostForMs ({ loss }) {
    return this.#now() - (loss?.sinceUnixMs ?? 0)
  }

  /**
   * @param {import('@memwatch/engine/history/target').Target} target
   * @param {import('@memwatch/engine/history/targets').EndCause} cause
   */
  #end (target, cause) {
    const watched = this.#watched.get(target)
    if (!watched || this.#stopped) return
    if (cause === 'bye') this.#leave(watched)
    else if (cause === 'forgotten' && watched.checkProcess() === 'lives') this.#forget(watched)
    else this.#settle(watched, cause === 'replaced')
  }

  /**
   * Handles a goodbye. If the process is visible in the kernel, its end must be confirmed there.
   * @param {Watched} watched
   */
  #leave (watched) {
    watched.byeCode = watched.target.exitCode
    if (!watched.witness || watched.exit || this.#leaving.size >= MOST_LEAVING) {
      return this.#settle(watched)
    }
    this.#leaving.add(watched)
    watched.leave(this.#now())
    this.#pollDying(watched, 0)
  }

  /** Handles a goodbye of a process that is still alive. @param {Watched} watched */
  #stays (watched) {
    this.#forget(watched)
    this.emit('lives', watched.target)
  }

  /** @param {Watched} watched */
  #forget (watched) {
    watched.settle()
    this.#watched.delete(watched.target)
    if (this.#leaving.delete(watched) && this.#leaving.size === 0) this.emit('settled')
  }

  /**
   * Records the death of a process that is gone, with its cause.
   * @param {Watched} watched
   * @param {boolean} [isReplaced] true if another process of its name exists
   */
  #settle (watched, isReplaced = false) {
    const { target, loss } = watched
    const isGone = watched.checkProcess() === 'gone'
    if (isGone) this.#gone.add(target)
    watched.settle()
    this.#watched.delete(target)
    // A target that never sent a frame is not reported, unless it was restored and its process
    // ended while the exporter was away.
    const isUnwatched = loss?.unwatched && !target.frame
    if (target.frame || isUnwatched) {
      const restarted = isReplaced ? 'restarted' : 'unknown'
      this.#report(watched, isGone, isUnwatched ? restarted : undefined)
    }
    this.#forget(watched)
  }

  /**
   * @param {Watched} watched
   * @param {boolean} isGone true if the kernel shows that the process is gone
   * @param {'restarted' | 'unknown'} [unwatched] set if the process ended while the exporter was
   *   away
   */
  #report (watched, isGone, unwatched) {
    const { target, loss, exit, byeCode } = watched
    const diedAtUnixMs = Math.round(loss?.sinceUnixMs ?? this.#now())
    const moments = lastMoments(target, diedAtUnixMs)
    const explanation = explainDeath({
      moments,
      unwatched,
      byeCode,
      exit,
      isGone,
      ...oomKillsSince(watched, this.#targets.all),
      silentGrowthBytes: watched.silentGrowthBytes,
      unreachable: loss?.unreachable
    })
    if (target.thread !== 'main' && !this.#ranOutOfHeap(target, explanation)) return
    const death = deathOf(target, {
      diedAtUnixMs,
      explanation,
      exitCode: exit ? exit.code : byeCode,
      signal: exit?.signal,
      advice: advise(explanation.reason, moments)
    })
    this.#dead.set(target, death.id)
    const folders = watched.snapshotFolders ?? this.#findMain(target)?.snapshotFolders ?? []
    this.emit('death', death, target.lastMinutes(LAST_MINUTES_SECONDS), target, folders)
  }

  /**
   * @param {import('@memwatch/engine/history/target').Target} target
   * @returns {Watched | undefined} target of the process's main thread, while it is watched
   */
  #findMain (target) {
    const process = processOf(target.hello)
    return [...this.#watched.values()].find(({ target: { hello, thread } }) =>
      thread === 'main' && processOf(hello) === process)
  }

  /**
   * True if a worker's heap was full; any other end of a worker is normal.
   * @param {import('@memwatch/engine/history/target').Target} target
   * @param {import('./explain').Explanation} explanation
   */
  #ranOutOfHeap (target, { reason, sure }) {
    const lives = this.#targets.all.some(
      ({ hello, thread, connected }) =>
        thread === 'main' && connected && processOf(hello) === processOf(target.hello)
    )
    return reason === 'heap_oom' && sure !== 'possible' && lives
  }
}

module.exports = { DeathWatch }
