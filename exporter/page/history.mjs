/**
 * @typedef {{ last: (number | null)[], min?: (number | null)[], max?: (number | null)[] }} Track
 * @typedef {object} Row one moment of a history
 * @property {(track: string) => number | null} last
 * @property {(track: string) => number | null} max maximum of its step
 * @property {(track: string) => number | null} rate growth of a counter per second, since the
 *   previous row
 */

/** Tracks over time, from /api/v1/…/series. Rows can be read, appended and removed. */
export class History {
  /** Times of the rows, in seconds since 1970. @type {number[]} */
  times = []
  /** @type {Record<string, Track>} */
  tracks = {}

  /**
   * @param {number} stepSeconds
   * @param {number} keepSeconds age in seconds from which rows are removed
   */
  constructor (stepSeconds, keepSeconds) {
    this.stepSeconds = stepSeconds
    this.keepSeconds = keepSeconds
  }

  /**
   * @param {number[]} times times in seconds since 1970, oldest first
   * @param {Record<string, Track>} tracks
   */
  append (times, tracks) {
    const newest = this.times.at(-1) ?? -Infinity
    const from = times.findIndex(time => time > newest)
    if (from < 0) return
    const first = Math.max(
      0,
      this.times.findIndex(time => time >= times[times.length - 1] - this.keepSeconds)
    )
    const drop = this.times.length === 0 ? 0 : first
    this.times = [...this.times.slice(drop), ...times.slice(from)]
    for (const [name, track] of Object.entries(tracks)) {
      const known = this.tracks[name] ??= { last: [] }
      for (const statistic of /** @type {const} */ (['last', 'min', 'max'])) {
        const values = track[statistic]
        if (values) {
          known[statistic] = [...(known[statistic] ?? []).slice(drop), ...values.slice(from)]
        }
      }
    }
  }

  /** Newest known time. */
  get lastTime () {
    return this.times.at(-1)
  }

  /**
   * @template T
   * @param {(row: Row, i: number) => T} read
   * @returns {T[]} result for each row
   */
  map (read) {
    return this.times.map((_, i) => read(this.row(i), i))
  }

  /**
   * @param {number} i
   * @returns {Row}
   */
  row (i) {
    const last = (/** @type {string} */ name) => this.tracks[name]?.last[i] ?? null
    return {
      last,
      max: name => this.tracks[name]?.max?.[i] ?? last(name),
      rate: name => {
        const [before, now] = [this.tracks[name]?.last[i - 1] ?? null, last(name)]
        const seconds = this.times[i] - this.times[i - 1]
        return before === null || now === null || now < before || !(seconds > 0)
          ? null
          : (now - before) / seconds
      }
    }
  }

  /**
   * True if rows are missing before row i: no line may be drawn across the gap.
   * @param {number} i
   */
  isAfterGap (i) {
    return i > 0 && this.times[i] - this.times[i - 1] > Math.max(5, 2.5 * this.stepSeconds)
  }
}
