'use strict'

const { EventEmitter, once } = require('node:events')
const { steadyUnixMs } = require('../clock')
const { processOf } = require('memwatch-engine/history/targets')
const { Witness } = require('../process/witness')
const { lastMoments, oomKillsSince } = require('./last-moments')
const { explainDeath } = require('./explain')
const { advise } = require('./advise')
const { deathOf } = require('./deaths')

/** How often those that fell silent are looked at. */
const LOOK_EVERY_MS = 1000
/**
 * An agent that lives connects anew within a second or two; a loop that stands still has no reason
 * to hang up.
 */
const RETURN_WITHIN_MS = 5000
/** After an exporter was away agents try every half minute, at most. */
const FIND_WITHIN_MS = 45_000
/** A kernel that is taking a process apart closes its sockets a moment before it is gone. */
const DYING_LOOKS_MS = [0, 20, 100, 300]
/** Silence of so many intervals is more than a frame that is late: from then on it is looked at, */
const LATE_INTERVALS = 1.5
/** and called silence from here. */
const SILENT_INTERVALS = 3
/** A parent that says how its child ended does so about when the child's connection ends. */
const TOLD_WITHIN_MS = 1000
/** CPU that a loop which is blocked by its own work uses at least, of each second. */
const BUSY_RATIO = 0.2
/**
 * A process that said goodbye and still lives after so long did not end: somebody else said it, or
 * it was held up.
 */
const LEAVE_WITHIN_MS = 30_000
/** Goodbyes that wait for the kernel. Beyond, the goodbye alone must do. */
const MOST_LEAVING = 64
/** What is kept of the time before an end. */
const LAST_MINUTES_SECONDS = 600

/**
 * @typedef {object} Watched
 * @property {import('memwatch-engine/history/target').Target} target
 * @property {Witness | null} witness
 * @property {number | undefined} oomKills in its cgroup when last counted while it lived
 * @property {{ sinceUnixMs: number, unreachable: boolean, unwatched: boolean } | undefined}
 *   vanished unwatched: while no exporter was looking
 * @property {import('../process/witness').Sight | undefined} sight while it is silent
 * @property {number | undefined} silentGrowthBytes
 * @property {import('./silence').SilenceCause | undefined} silence
 * @property {import('../process/witness').Exit | undefined} exit as its parent told
 * @property {number | undefined} byeCode exit code of its goodbye
 */

/**
 * Watches targets die. Emits `death` (death, lastMinutes, target), once for each process, and for a
 * worker that ran out of heap; `alive` (id of the death) when someone comes back who was taken for
 * dead, as after the network was gone; and `lives` (target) when the kernel shows that a process
 * lives which said goodbye.
 */
class DeathWatch extends EventEmitter {
  #targets
  #now
  #witnessOf
  #overNetwork
  /** @type {Map<import('memwatch-engine/history/target').Target, Watched>} */
  #watched = new Map()
  /**
   * Ids of the deaths of those that are not watched any more.
   * @type {WeakMap<import('memwatch-engine/history/target').Target, string>}
   */
  #dead = new WeakMap()
  /** Those that said goodbye, while the kernel still shows their process. @type {Set<Watched>} */
  #leaving = new Set()
  /**
   * Those whose process the kernel showed to be gone.
   * @type {WeakSet<import('memwatch-engine/history/target').Target>}
   */
  #gone = new WeakSet()
  /** Processes whose parent will say how they ended. @type {Set<number>} */
  #told = new Set()
  /** @type {NodeJS.Timeout | undefined} */
  #timer
  #lookedAtMs = 0
  #stopped = false

  /**
   * @param {import('memwatch-engine/history/targets').Targets} targets
   * @param {{ now?: () => number, witnessOf?: (hello: import('memwatch/protocol/frame').Hello) => Witness |
   *   null, overNetwork?: boolean }} [options] now: ms; overNetwork: silence may be the network's
   */
  constructor (targets, { now = steadyUnixMs, witnessOf = Witness.of, overNetwork = false } = {}) {
    super()
    this.#targets = targets
    this.#now = now
    this.#witnessOf = witnessOf
    this.#overNetwork = overNetwork
    targets.on('open', target => this.#open(target))
    targets.on('frame', target => this.#heard(target))
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

  /** What happens from now on, as connections are closed, is the exporter's doing. */
  stop () {
    for (const watched of this.#leaving) this.#settle(watched)
    this.#stopped = true
    clearInterval(this.#timer)
  }

  /** Resolves when no goodbye waits for the kernel. */
  async settled () {
    while (this.#leaving.size > 0) await once(this, 'settled')
  }

  /**
   * What the kernel says of a target's process, where it was seen when the target was opened.
   * @param {import('memwatch-engine/history/target').Target} target
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
    const witness = this.#watched.get(main)?.witness
    return witness ? (witness.look().state === 'gone' ? 'gone' : 'lives') : undefined
  }

  /**
   * Why a target is silent; undefined while it is not.
   * @param {import('memwatch-engine/history/target').Target} target
   */
  silenceOf (target) {
    return this.#watched.get(target)?.silence
  }

  /** The caller started this process, and will say how it ended. @param {number} pid */
  expectExit (pid) {
    this.#told.add(pid)
  }

  /**
   * @param {number} pid that was expected to end
   * @param {import('../process/witness').Exit} exit
   */
  exited (pid, exit) {
    this.#told.delete(pid)
    for (const watched of this.#watched.values()) {
      const { target } = watched
      if (target.hello.pid !== pid || target.thread !== 'main') continue
      watched.exit = exit
      if (watched.vanished) this.#settle(watched)
    }
  }

  /** Look at all that are silent. Called once a second. */
  look () {
    const now = this.#now()
    const late = now - this.#lookedAtMs > 3 * LOOK_EVERY_MS
    this.#lookedAtMs = now
    // Who was held up itself has frames to read first: their senders are not silent.
    if (late) return
    for (const watched of this.#watched.values()) {
      if (watched.vanished) this.#lookForVanished(watched)
      else {
        const intervals =
          (now - watched.target.seenAtUnixMs) / 1000 / watched.target.hello.intervalSeconds
        if (intervals > LATE_INTERVALS) this.#lookAtLate(watched, intervals > SILENT_INTERVALS)
      }
    }
  }

  /** @param {import('memwatch-engine/history/target').Target} target */
  #open (target) {
    // A process that says hello has not left.
    for (const watched of this.#leaving) {
      if (processOf(watched.target.hello) === processOf(target.hello)) this.#stays(watched)
    }
    const witness = target.thread === 'main' ? this.#witnessOf(target.hello) : null
    this.#watched.set(target, {
      target,
      witness,
      oomKills: witness?.oomKills(),
      vanished: undefined,
      sight: undefined,
      silentGrowthBytes: undefined,
      silence: undefined,
      exit: undefined,
      byeCode: undefined
    })
  }

  /** @param {import('memwatch-engine/history/target').Target} target */
  #back (target) {
    if (this.#watched.has(target)) return this.#heard(target)
    this.#open(target)
    const id = this.#dead.get(target)
    this.#dead.delete(target)
    if (id !== undefined) this.emit('alive', id)
  }

  /** @param {import('memwatch-engine/history/target').Target} target */
  #heard (target) {
    const watched = this.#watched.get(target)
    if (!watched) return
    watched.vanished = undefined
    watched.silence = undefined
    watched.sight = undefined
    watched.silentGrowthBytes = undefined
    // Counted anew now and then: a sibling that was killed earlier is not this one.
    const { containerOomKills } = target.frame?.values ?? {}
    if (containerOomKills !== undefined) watched.oomKills = watched.witness?.oomKills()
  }

  /**
   * @param {Watched} watched
   * @param {boolean} silent
   */
  #lookAtLate (watched, silent) {
    const { witness, target } = watched
    if (!witness) {
      if (silent) watched.silence = 'unknown'
      return
    }
    const sight = witness.look()
    const before = watched.sight
    watched.sight = sight
    const rss = witness.rssBytes()
    if (rss !== undefined && target.values.rssBytes !== undefined) {
      watched.silentGrowthBytes = Math.max(
        watched.silentGrowthBytes ?? 0,
        rss - target.values.rssBytes
      )
    }
    if (!silent) return
    if (sight.state === 'stopped') watched.silence = 'stopped'
    else if (sight.state !== 'gone' && before) {
      watched.silence =
        sight.cpuSeconds - before.cpuSeconds >= (BUSY_RATIO * LOOK_EVERY_MS) / 1000
          ? 'loop_blocked'
          : this.#overNetwork
            ? 'unknown'
            : 'waiting'
    }
  }

  /**
   * @param {import('memwatch-engine/history/target').Target} target
   * @param {{ unreachable: boolean, unwatched: boolean }} how
   */
  #vanish (target, how) {
    const watched = this.#watched.get(target)
    if (!watched || this.#stopped) return
    watched.vanished = { sinceUnixMs: this.#now(), ...how }
    if (watched.exit) this.#settle(watched)
    else if (watched.witness && !how.unwatched) this.#lookWhileDying(watched, 0)
  }

  /**
   * How it ended can be read only until its parent has asked.
   * @param {Watched} watched
   * @param {number} look
   */
  #lookWhileDying (watched, look) {
    if (!watched.vanished || !this.#watched.has(watched.target)) return
    const sight = /** @type {Witness} */ (watched.witness).look()
    watched.exit ??= sight.exit
    if (sight.state === 'gone') return this.#settleGone(watched)
    if (look + 1 < DYING_LOOKS_MS.length) {
      setTimeout(
        () => this.#lookWhileDying(watched, look + 1),
        DYING_LOOKS_MS[look + 1] - DYING_LOOKS_MS[look]
      ).unref()
    }
  }

  /** @param {Watched} watched */
  #settleGone (watched) {
    const waits =
      !watched.exit &&
      this.#told.has(watched.target.hello.pid) &&
      this.#now() - (watched.vanished?.sinceUnixMs ?? 0) < TOLD_WITHIN_MS
    if (!waits) this.#settle(watched)
  }

  /** @param {Watched} watched that has no connection any more */
  #lookForVanished (watched) {
    const { witness, vanished } = watched
    if (!vanished) return
    if (witness) {
      const sight = witness.look()
      watched.exit ??= sight.exit
      if (sight.state === 'gone') this.#settleGone(watched)
      else if (!this.#leaving.has(watched)) watched.silence = 'connection_lost'
      else if (this.#now() - vanished.sinceUnixMs >= LEAVE_WITHIN_MS) this.#stays(watched)
    } else if (
      this.#now() - vanished.sinceUnixMs >=
      (vanished.unwatched ? FIND_WITHIN_MS : RETURN_WITHIN_MS)
    ) {
      this.#settle(watched)
    }
  }

  /**
   * @param {import('memwatch-engine/history/target').Target} target
   * @param {import('memwatch-engine/history/targets').EndCause} cause
   */
  #end (target, cause) {
    const watched = this.#watched.get(target)
    if (!watched || this.#stopped) return
    if (cause === 'bye') return this.#leave(watched)
    const lives =
      cause === 'forgotten' && watched.witness && watched.witness.look().state !== 'gone'
    if (lives) this.#watched.delete(target)
    else this.#settle(watched, cause === 'replaced')
  }

  /**
   * It said goodbye. That its process is gone, the kernel must say, where it can be asked.
   * @param {Watched} watched
   */
  #leave (watched) {
    watched.byeCode = watched.target.exitCode
    if (!watched.witness || watched.exit || this.#leaving.size >= MOST_LEAVING) {
      return this.#settle(watched)
    }
    this.#leaving.add(watched)
    watched.vanished = { sinceUnixMs: this.#now(), unreachable: false, unwatched: false }
    this.#lookWhileDying(watched, 0)
  }

  /** It said goodbye, and lives. @param {Watched} watched */
  #stays (watched) {
    this.#forget(watched)
    this.emit('lives', watched.target)
  }

  /** @param {Watched} watched */
  #forget (watched) {
    this.#watched.delete(watched.target)
    if (this.#leaving.delete(watched) && this.#leaving.size === 0) this.emit('settled')
  }

  /**
   * It is gone: say why.
   * @param {Watched} watched
   * @param {boolean} [replaced] another of its name is there
   */
  #settle (watched, replaced = false) {
    const { target, vanished, exit, silentGrowthBytes, byeCode } = watched
    const isGone = watched.witness !== null && watched.witness.look().state === 'gone'
    if (isGone) this.#gone.add(target)
    this.#watched.delete(target)
    // Of a restored one no frame is there, and of one that said nothing there is nothing to tell.
    const unwatched = vanished?.unwatched && !target.frame
    if (!target.frame && !unwatched) return this.#forget(watched)
    const diedAtUnixMs = Math.round(vanished?.sinceUnixMs ?? this.#now())
    const kills = oomKillsSince(watched, this.#targets.all)
    const moments = lastMoments(target, diedAtUnixMs)
    const explanation = explainDeath({
      moments,
      unwatched: unwatched ? (replaced ? 'restarted' : 'unknown') : undefined,
      byeCode,
      exit,
      isGone,
      ...kills,
      silentGrowthBytes,
      unreachable: vanished?.unreachable
    })
    if (target.thread === 'main' || this.#ranOutOfHeap(target, explanation)) {
      const death = deathOf(target, {
        diedAtUnixMs,
        explanation,
        exitCode: exit ? exit.code : byeCode,
        signal: exit?.signal,
        advice: advise(explanation.reason, moments)
      })
      this.#dead.set(target, death.id)
      this.emit('death', death, target.lastMinutes(LAST_MINUTES_SECONDS), target)
    }
    this.#forget(watched)
  }

  /**
   * A worker ends as its app likes; one whose heap was full did not.
   * @param {import('memwatch-engine/history/target').Target} target
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
