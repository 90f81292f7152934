'use strict'

const { GcCounters } = require('./gc-counters')
const { NewSpace } = require('./new-space')
const { heapBounds, heapSizeLimit, semiSpaceOfFlags } = require('./heap-bounds')

/**
 * After a longer gap between GCs, only the last RESUMED_SECONDS of the gap become frames: no trend
 * needs the others.
 */
const LONG_SILENCE_SECONDS = 7200
const RESUMED_SECONDS = 600

/**
 * One isolate in a GC log: its lines become one frame a second, like those of an agent. Between GCs
 * the counters are constant.
 */
class GcLogLife {
  #gc = new GcCounters()
  #newSpace = new NewSpace()
  #given
  #heldBytes = 0
  #liveHeapMajors = 0
  /** @type {import('@memwatch/agent/protocol/frame').Frame['values']} */
  #values = {}
  #life
  #nextFrameSeconds = NaN
  lastSeconds = 0

  /**
   * @param {import('./lives').Lives} lives
   * @param {Partial<import('@memwatch/agent/protocol/frame').Hello> & { name: string }} hello
   * @param {import('./define-source').Given} given
   */
  constructor (lives, hello, given) {
    this.#given = given
    this.#life = lives.open(hello, () => this.#bounds())
  }

  /** @param {import('./gc-log-line').GcLine} line GC line; not earlier than the previous one */
  take (line) {
    this.#framesUntil(line.atSeconds)
    this.lastSeconds = line.atSeconds
    this.#gc.add(line.kind, line.cause, line.pauseSeconds)
    if (line.stepsSeconds > 0) this.#gc.add('incremental', 'ordinary', line.stepsSeconds)
    this.#newSpace.take(line)
    this.#heldBytes = Math.max(this.#heldBytes, line.totalBeforeBytes, line.totalAfterBytes)
    const values = this.#values
    values.heapUsedBytes = line.usedAfterBytes
    values.heapTotalBytes = line.totalAfterBytes
    if (line.kind === 'major') {
      // A major GC empties the new space, so the remaining bytes are live.
      values.liveHeapBytes = line.usedAfterBytes
      values.liveHeapMajors = ++this.#liveHeapMajors
    }
  }

  /** True for the main thread. */
  get isMain () {
    return this.#life?.target.hello.threadId === 0
  }

  /**
   * Corrects an isolate that was mistaken for the main thread, once an older isolate is found.
   * @param {GcLogLife} older
   */
  yieldTo (older) {
    const [own, others] = [this.#life?.target, older.#life?.target]
    if (!own || !others || !this.isMain) return
    ;[own.hello.threadId, others.hello.threadId] = [others.hello.threadId, 0]
    ;[own.thread, others.thread] = [others.thread, own.thread]
  }

  /** Sends the state at the last line. */
  flush () {
    if (!Number.isNaN(this.#nextFrameSeconds)) this.#frame(this.lastSeconds)
  }

  /** Records that the process ended, as the log shows. */
  end () {
    this.#life?.markEnded()
    this.close()
  }

  close () {
    this.flush()
    this.#life?.close()
  }

  /** @param {number} seconds */
  #framesUntil (seconds) {
    if (Number.isNaN(this.#nextFrameSeconds)) this.#nextFrameSeconds = Math.floor(seconds)
    if (seconds - this.#nextFrameSeconds > LONG_SILENCE_SECONDS) {
      this.#nextFrameSeconds = Math.floor(seconds) - RESUMED_SECONDS
    }
    for (; this.#nextFrameSeconds <= seconds; this.#nextFrameSeconds++) {
      this.#frame(this.#nextFrameSeconds)
    }
  }

  /** @param {number} seconds */
  #frame (seconds) {
    const capacityBytes = this.#semiSpaceBytes()
    const limit = heapSizeLimit(this.#given, this.#newSpace.maxBytes ?? capacityBytes ?? 0)
    this.#life?.frame(seconds, {
      ...this.#values,
      gc: this.#gc.rows,
      ...(capacityBytes !== undefined && {
        spaces: { new_space: [0, 2 * capacityBytes, capacityBytes, 2 * capacityBytes] }
      }),
      ...(limit !== undefined && { heapSizeLimitBytes: limit }),
      ...(this.#given.containerLimitBytes !== undefined && {
        containerLimitBytes: this.#given.containerLimitBytes
      })
    })
  }

  /** Estimated size of a semi-space, which cannot exceed the maximum that a flag sets. */
  #semiSpaceBytes () {
    const { capacityBytes } = this.#newSpace
    return capacityBytes === undefined
      ? undefined
      : Math.min(capacityBytes, semiSpaceOfFlags(this.#given) ?? Infinity)
  }

  #bounds () {
    const worker = !this.isMain
    return heapBounds(
      {
        heldBytes: this.#heldBytes,
        semiSpaceCapacityBytes: this.#newSpace.capacityBytes,
        semiSpaceMaxBytes: this.#newSpace.maxBytes,
        worker
      },
      this.#given
    )
  }
}

module.exports = { GcLogLife }
