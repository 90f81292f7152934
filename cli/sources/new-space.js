'use strict'

const { quantile } = require('simple-statistics')

const MIB = 2 ** 20
/** The size is estimated after this many scavenges. */
const LOOKED_AT = 50
/**
 * V8 enlarges a semi-space once more bytes survived than it holds. This factor on the size makes
 * sure that a rough estimate does not count as a proof.
 */
const PROVEN_TIMES = 2
/** The largest semi-space that V8 chooses without flags, on Node 24 and 25. */
const LARGEST_SEMI_SPACE_BYTES = 64 * MIB

/**
 * Size of the new space, estimated from a GC log. Allocations from one GC to the next fit into a
 * semi-space, and fill it now and then. Bytes that a scavenge adds to the heap were promoted, so
 * they survived. V8 doubles the capacity up to its maximum if more bytes than the capacity survived
 * since the last change (Heap::ShouldResizeNewSpace). If V8 does not double it then, the maximum is
 * reached.
 */
class NewSpace {
  /** @type {number[]} bytes allocated before each of the last scavenges */
  #allocated = []
  #scavenges = 0
  #survivedBytes = 0
  #lastUsedBytes = NaN
  /**
   * Size of one semi-space, a power of two; undefined before there are enough scavenges.
   * @type {number | undefined}
   */
  capacityBytes

  /**
   * @param {Pick<import('./gc-log-line').GcLine, 'filled' | 'usedBeforeBytes' | 'usedAfterBytes'> &
   *   { kind: string, capacityBytes?: number }} gc
   *   capacityBytes: the size, if the log contains it
   */
  take ({ kind, filled, usedBeforeBytes, usedAfterBytes, capacityBytes }) {
    const last = this.#lastUsedBytes
    this.#lastUsedBytes = usedAfterBytes
    if (kind !== 'minor' || Number.isNaN(last)) return
    this.#survivedBytes += usedAfterBytes - last
    if (capacityBytes !== undefined) {
      return this.#stands(2 ** Math.ceil(Math.log2(Math.max(1, capacityBytes))))
    }
    if (!filled) return
    this.#allocated.push(Math.max(0, usedBeforeBytes - last))
    if (++this.#scavenges % LOOKED_AT !== 0) return
    // Most scavenges run a little early, at four fifths, and some include large objects.
    const capacity = Math.max(
      MIB,
      2 ** Math.round(Math.log2(Math.max(1, quantile(this.#allocated, 0.9))))
    )
    this.#allocated = []
    this.#stands(capacity)
  }

  /** @param {number} capacityBytes */
  #stands (capacityBytes) {
    if (capacityBytes !== this.capacityBytes) this.#survivedBytes = 0
    this.capacityBytes = capacityBytes
  }

  /**
   * Maximum of one semi-space, once it is proven.
   * @returns {number | undefined}
   */
  get maxBytes () {
    return this.capacityBytes !== undefined &&
      this.#survivedBytes > PROVEN_TIMES * this.capacityBytes
      ? this.capacityBytes
      : undefined
  }
}

module.exports = { NewSpace, LARGEST_SEMI_SPACE_BYTES }
