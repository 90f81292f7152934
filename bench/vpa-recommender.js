'use strict'

/**
 * Memory recommender of Kubernetes' Vertical Pod Autoscaler, written anew from its published rules
 * for the comparison of `npm run bench:right-size`. Sources, in kubernetes/autoscaler at
 * 55c37cd5eb55 (August 2026), below vertical-pod-autoscaler/pkg/recommender:
 *
 * - model/aggregations_config.go: one peak a day for eight days, half-life of 24 h, bump after OOM
 * - model/container.go: peak of an interval, and RecordOOM
 * - model/aggregate_container_state.go: weights of 1 for each peak
 * - util/histogram_options.go, histogram.go, decaying_histogram.go: buckets and percentile
 * - logic/recommender.go, estimator.go, config/config.go: percentiles, margin, confidence
 *
 * It printed the same numbers as that code (module version v1.5.1) on the series of
 * test/engine/right-size.test.js.
 */

const DAY_SECONDS = 86_400
const FIRST_BUCKET_BYTES = 1e7
const MOST_BYTES = 1e12
const BUCKET_GROWTH = 1.05
/** Least weight of a bucket that counts: 0.001 of the least sample weight, 0.1. */
const EPSILON = 0.0001
const HALF_LIFE_SECONDS = DAY_SECONDS
const OOM_BUMP_RATIO = 1.2
const OOM_BUMP_BYTES = 100 * 2 ** 20
const SAFETY_MARGIN = 0.15
const LEAST_BYTES = 250 * 2 ** 20
const TARGET = 0.9
const LOWER = 0.5
const UPPER = 0.95
/** Number of samples in a day, at one a minute. VPA normalizes its confidence to this number. */
const SAMPLES_A_DAY = 1440

const BUCKETS = Math.ceil(
  Math.log((MOST_BYTES * (BUCKET_GROWTH - 1)) / FIRST_BUCKET_BYTES + 1) / Math.log(BUCKET_GROWTH)
) + 1

/** @param {number} bytes */
const findBucket = bytes => bytes < FIRST_BUCKET_BYTES
  ? 0
  : Math.min(BUCKETS - 1, Math.floor(
    Math.log((bytes * (BUCKET_GROWTH - 1)) / FIRST_BUCKET_BYTES + 1) / Math.log(BUCKET_GROWTH)
  ))
/** @param {number} bucket */
const bucketStart = bucket =>
  (FIRST_BUCKET_BYTES * (BUCKET_GROWTH ** bucket - 1)) / (BUCKET_GROWTH - 1)

/** Recommender of one container. Weights are relative to the first sample. */
class VpaRecommender {
  #weights = new Float64Array(BUCKETS)
  #startSeconds = NaN
  #lastSeconds = NaN
  #windowEnd = NaN
  #samples = 0
  #memoryPeak = 0
  #oomPeak = 0

  /**
   * A reading of the working set; VPA takes one a minute.
   * @param {number} unixSeconds
   * @param {number} bytes
   */
  add (unixSeconds, bytes) {
    this.#samples++
    this.#lastSeconds = unixSeconds
    this.#take(unixSeconds, bytes, false)
  }

  /**
   * A kill for memory.
   * @param {number} unixSeconds
   * @param {number} requestedBytes request of the container
   */
  addKill (unixSeconds, requestedBytes) {
    const used = Math.max(requestedBytes, this.#memoryPeak)
    this.#take(unixSeconds, Math.max(used + OOM_BUMP_BYTES, used * OOM_BUMP_RATIO), true)
  }

  /**
   * @param {number} unixSeconds
   * @param {number} bytes
   * @param {boolean} isKill
   */
  #take (unixSeconds, bytes, isKill) {
    if (Number.isNaN(this.#startSeconds)) this.#startSeconds = this.#windowEnd = unixSeconds
    const peak = Math.max(this.#memoryPeak, this.#oomPeak)
    if (unixSeconds < this.#windowEnd) {
      if (peak === 0 || bytes <= peak) return
      this.#weigh(peak, -1)
    } else {
      const days = Math.floor((unixSeconds - this.#windowEnd) / DAY_SECONDS) + 1
      this.#windowEnd += days * DAY_SECONDS
      this.#memoryPeak = this.#oomPeak = 0
    }
    this.#weigh(bytes, 1)
    if (isKill) this.#oomPeak = bytes
    else this.#memoryPeak = bytes
  }

  /**
   * @param {number} bytes
   * @param {number} sign
   */
  #weigh (bytes, sign) {
    const bucket = findBucket(bytes)
    const age = (this.#windowEnd - this.#startSeconds) / HALF_LIFE_SECONDS
    const weight = this.#weights[bucket] + sign * 2 ** age
    this.#weights[bucket] = weight < EPSILON ? 0 : weight
  }

  /**
   * @param {number} share
   * @returns {number} end of the bucket, in bytes
   */
  #percentile (share) {
    const total = this.#weights.reduce((sum, weight) => sum + weight, 0)
    const last = this.#weights.findLastIndex(weight => weight >= EPSILON)
    let sum = 0
    let bucket = this.#weights.findIndex(weight => weight >= EPSILON)
    for (; bucket < last; bucket++) {
      sum += this.#weights[bucket]
      if (sum >= share * total) break
    }
    return bucketStart(Math.min(bucket + 1, BUCKETS - 1))
  }

  /**
   * @returns {{ targetBytes: number, lowerBytes: number, upperBytes: number }} target: the request;
   *   the pod is evicted when its request is outside of the bounds
   */
  get recommendation () {
    const days = Math.min(
      (this.#lastSeconds - this.#startSeconds) / DAY_SECONDS,
      this.#samples / SAMPLES_A_DAY
    )
    const withMargin = (/** @type {number} */ share) => (1 + SAFETY_MARGIN) * this.#percentile(share)
    const least = (/** @type {number} */ bytes) => Math.max(LEAST_BYTES, bytes)
    return {
      targetBytes: least(withMargin(TARGET)),
      lowerBytes: least(withMargin(LOWER) * (1 + 0.001 / days) ** -2),
      upperBytes: least(withMargin(UPPER) * (1 + 1 / days))
    }
  }
}

module.exports = { VpaRecommender }
