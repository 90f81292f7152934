'use strict'

const { leastSquares } = require('./least-squares')
const { median, quantile } = require('./quantile')

const DAY_SECONDS = 86_400
/** Length of the slots of a day in which days are compared. */
const SLOT_SECONDS = 600
/**
 * Least length of a history in which the same hours of different days are compared: with little
 * more than one day the comparison is too noisy.
 */
const SLOTS_FROM_SECONDS = 30 * 3600
/**
 * A history of this length distinguishes a daily wave, of 24 and 12 hours, from a line.
 */
const WAVES_FROM_SECONDS = 20 * 3600
const WAVES = [1, 2]
/** The level follows a load whose coefficient is at least this many standard errors. */
const LOAD_SCORE = 3
/** Half width of a 95 % confidence interval of the slope, in standard errors. */
const ERRORS = 2
/** Time constants of a cache that fills, as shares of the time. */
const FILL_SHARES = [1 / 8, 1 / 4, 1 / 2]
/** A cache is no explanation if it makes the sum of squares larger by this factor. */
const MOST_WORSE = 1.5
/**
 * Readings in the moving average of a load. A single reading is noisier than the level, and would
 * explain too little of it.
 */
const SMOOTH_READINGS = 5
/** Fewer readings define no line. */
const LEAST_READINGS = 8
/** Largest share of missing readings of a load that is still used. */
const MISSING_SHARE = 0.05
/** Share of a day that must be present in two days before they are compared. */
const DAY_SHARE = 0.4
/** From this number of earlier days on, one of them may be an exception. */
const LEAST_DAYS_WITH_EXCEPTION = 4
/**
 * A day agrees with the others if it grew by this share of the mean growth per day.
 */
const AGREES_RATIO = 0.4
/** Smallest divisor for relative slopes, which avoids a division by zero. */
const LEAST_SLOPE = Number.EPSILON

/**
 * @typedef {object} Growth
 * @property {number} slope growth of the level per second, without the effects of load and hour of
 *   the day
 * @property {number} error its standard error
 * @property {number} leastRatio lower bound of the slope relative to the slope: the slope less two
 *   standard errors, under the load that explains most of the growth
 * @property {number} noise standard deviation of the readings around the fit
 * @property {number} seconds from the first to the last reading
 * @property {number} readings
 * @property {number} lateRatio slope of the last third relative to the whole slope, at the upper
 *   end of its error: 1 if the growth continues
 * @property {number} bendRatio largest difference of a third's slope from the whole slope, beyond
 *   its error: 0 is a straight line
 * @property {number} loadRise part of the rise between the first and last reading that the load
 *   explains
 * @property {number} loadSwing range of the part of the level that follows the load: from its 10th
 *   to its 90th percentile
 * @property {number | null} loadMovesRatio range of the loads relative to their median; null if no
 *   load is known
 * @property {number | null} steadyDays number of consecutive days up to now whose growth resembles
 *   the mean growth, each compared with the same hours of the previous day; null until two days can
 *   be compared
 * @property {number | null} aboveAllDays median by which the last day exceeds the same ten minutes
 *   of all earlier days, of four or more but one; null until there are two earlier days
 */

/**
 * Growth of a level that follows a load and the hour of the day. It is a fit by least squares of
 * the level to time, to the load that explains the level best, and to the hour of the day. The hour
 * is removed by comparing readings with the same ten minutes of other days (the within estimator of
 * fixed effects). With only 20 to 30 hours of history, fitted daily waves remove it.
 *
 * @param {object} series of one length, NaN if a reading is absent
 * @param {readonly number[]} series.times seconds, ascending
 * @param {readonly number[]} series.level
 * @param {readonly (readonly number[])[]} series.loads loads that the level may follow
 * @param {boolean} [series.daily] true if the hour of the day may explain growth
 * @returns {Growth | null} null with too few readings
 */
function unexplainedGrowth ({ times, level, loads, daily = true }) {
  const known = times.map((_, i) => i).filter(i => Number.isFinite(level[i]))
  if (known.length < LEAST_READINGS) return null
  const t = Float64Array.from(known, i => times[i])
  const y = Float64Array.from(known, i => level[i])
  const seconds = t[t.length - 1] - t[0]
  const present = loads.map(load => whole(known.map(i => load[i]))).filter(load => load !== null)
  const kind =
    !daily || seconds < WAVES_FROM_SECONDS
      ? 'none'
      : seconds < SLOTS_FROM_SECONDS
        ? 'waves'
        : 'slots'
  const season = seasonOf(kind, t)
  const { best, load, least } = explainByLoad(season, t, y, present)
  if (!best) return null
  const [slope, perLoad = 0] = best.coefficients
  const explained = load ? load.map(value => perLoad * value) : new Float64Array(y.length)
  const unexplained = y.map((value, i) => value - explained[i])
  const line = best.residuals.map((value, i) => value + slope * best.at[i])
  const thirds = [0, 1, 2].map(third =>
    slopeWithin(
      best.at,
      line,
      best.at[0] + (seconds * third) / 3,
      best.at[0] + (seconds * (third + 1)) / 3
    )
  )
  const late = thirds[2]
  const whole_ = Math.max(LEAST_SLOPE, Math.abs(slope))
  const leastSlope = daily && kind !== 'slots'
    ? Math.min(least, leastBesideFill(season, t, y, present, sumOfSquares(best.residuals)))
    : least
  return {
    slope,
    error: best.errors[0],
    leastRatio: slope > 0 ? leastSlope / slope : 0,
    noise: Math.sqrt(sumOfSquares(best.residuals) / y.length),
    seconds,
    readings: y.length,
    lateRatio: late ? (late.slope + late.error) / whole_ : 1,
    bendRatio: Math.max(
      0,
      ...thirds.map(third => (third ? (Math.abs(third.slope - slope) - third.error) / whole_ : 0))
    ),
    loadRise: load
      ? perLoad * ((slopeWithin(t, load, t[0], t[t.length - 1])?.slope ?? 0) * seconds)
      : 0,
    loadSwing: load ? quantile(explained, 0.9) - quantile(explained, 0.1) : 0,
    loadMovesRatio: present.length === 0 ? null : Math.max(...present.map(movesRatio)),
    steadyDays: daily ? steadyDays(t, unexplained, slope) : null,
    aboveAllDays: daily ? aboveAllDays(t, unexplained) : null
  }
}

/**
 * Lower bound of the slope if a cache filled meanwhile: its level approaches a bound exponentially.
 * @param {Season} season that may explain growth as well
 * @param {Float64Array} t
 * @param {Float64Array} y
 * @param {Float64Array[]} loads that the level may follow as well
 * @param {number} squares sum of the squared residuals without a cache
 */
function leastBesideFill (season, t, y, loads, squares) {
  const seconds = t[t.length - 1] - t[0]
  let least = Infinity
  for (const share of FILL_SHARES) {
    const fill = t.map(time => -Math.exp((t[0] - time) / (share * seconds)))
    for (const beside of [[], ...loads.map(load => [load])]) {
      const found = fit(season, t, y, [fill, ...beside])
      if (!found || found.coefficients[1] <= ERRORS * found.errors[1]) continue
      if (sumOfSquares(found.residuals) > MOST_WORSE * squares) continue
      least = Math.min(least, found.coefficients[0] - ERRORS * found.errors[0])
    }
  }
  return least
}

/**
 * Selects the load that explains the level best.
 * @param {ReturnType<typeof seasonOf>} season
 * @param {Float64Array} t
 * @param {Float64Array} y
 * @param {readonly Float64Array[]} loads
 * @returns {{ best: ReturnType<typeof fit>, load: Float64Array | null, least: number }} load: null
 *   if no load explains the level; least: lower bound of the slope, whichever load is used
 */
function explainByLoad (season, t, y, loads) {
  const alone = fit(season, t, y, [])
  let best = alone
  let load = null
  let least = alone ? alone.coefficients[0] - ERRORS * alone.errors[0] : 0
  for (const candidate of loads) {
    const found = fit(season, t, y, [candidate])
    if (!found || found.coefficients[1] + ERRORS * found.errors[1] <= 0) continue
    // A load that rises in a line counts as the explanation until the data distinguish load and
    // growth.
    least = Math.min(least, found.coefficients[0] - ERRORS * found.errors[0])
    if (found.coefficients[1] < LOAD_SCORE * found.errors[1]) continue
    if (best && sumOfSquares(found.residuals) >= sumOfSquares(best.residuals)) continue
    best = found
    load = candidate
  }
  return { best, load, least }
}

/**
 * @param {number[]} load
 * @returns {Float64Array | null} the smoothed load, with gaps filled by its median; null with too
 *   many gaps
 */
function whole (load) {
  const there = load.filter(Number.isFinite)
  if (there.length < (1 - MISSING_SHARE) * load.length || there.length === 0) return null
  const middle = median(there)
  const filled = load.map(value => Number.isFinite(value) ? value : middle)
  const half = Math.floor(SMOOTH_READINGS / 2)
  return Float64Array.from(filled, (_, i) => {
    const around = filled.slice(Math.max(0, i - half), i + half + 1)
    return around.reduce((sum, value) => sum + value, 0) / around.length
  })
}

/** @param {Float64Array} load */
function movesRatio (load) {
  const middle = median(load)
  return middle > 0 ? (quantile(load, 0.95) - quantile(load, 0.05)) / middle : 0
}

/** Ten minutes of the day. @param {number} time seconds */
const slotOf = time => Math.floor((time % DAY_SECONDS) / SLOT_SECONDS)

/**
 * Transformation that removes the hour of the day from a column.
 * @typedef {object} Season
 * @property {number[]} rows indexes of the rows that remain
 * @property {number} lost number of degrees of freedom used
 * @property {(column: Float64Array) => Float64Array} without returns the values of those rows,
 *   without the effect of the hour of the day
 * @property {Float64Array[]} waves additional regressors
 */

/**
 * @param {'none' | 'waves' | 'slots'} kind
 * @param {Float64Array} t
 * @returns {Season}
 */
function seasonOf (kind, t) {
  const all = Array.from(t, (_, i) => i)
  if (kind !== 'slots') {
    const waves =
      kind === 'none'
        ? []
        : WAVES.flatMap(wave =>
          [Math.cos, Math.sin].map(of =>
            centred(t.map(time => of((2 * Math.PI * wave * time) / DAY_SECONDS)))
          )
        )
    return { rows: all, lost: 1, without: centred, waves }
  }
  const slots = Array.from(t, slotOf)
  const counts = new Map()
  for (const slot of slots) counts.set(slot, (counts.get(slot) ?? 0) + 1)
  const rows = all.filter(i => counts.get(slots[i]) > 1)
  const without = (/** @type {Float64Array} */ column) => {
    const sums = new Map()
    for (const i of rows) sums.set(slots[i], (sums.get(slots[i]) ?? 0) + column[i])
    return Float64Array.from(rows, i => column[i] - sums.get(slots[i]) / counts.get(slots[i]))
  }
  return { rows, lost: new Set(rows.map(i => slots[i])).size, without, waves: [] }
}

/** @param {Float64Array} column */
function centred (column) {
  let sum = 0
  for (const value of column) sum += value
  const mean = sum / column.length
  return column.map(value => value - mean)
}

/**
 * @param {Season} season
 * @param {Float64Array} t
 * @param {Float64Array} y
 * @param {Float64Array[]} loads
 * @returns {{ coefficients: number[], errors: number[], residuals: Float64Array, at: Float64Array }
 *   | null} coefficients of time first, then of the loads; at: times of the residuals in seconds
 */
function fit (season, t, y, loads) {
  const found = leastSquares(
    [season.without(t), ...loads.map(season.without), ...season.waves],
    season.without(y),
    season.lost
  )
  return found && { ...found, at: Float64Array.from(season.rows, i => t[i]) }
}

/** @param {Float64Array} values */
const sumOfSquares = values => values.reduce((sum, value) => sum + value * value, 0)

/**
 * @param {Float64Array} t
 * @param {Float64Array} y
 * @param {number} from
 * @param {number} to
 */
function slopeWithin (t, y, from, to) {
  const rows = Array.from(t, (_, i) => i).filter(i => t[i] >= from && t[i] <= to)
  const found = leastSquares(
    [centred(Float64Array.from(rows, i => t[i]))],
    centred(Float64Array.from(rows, i => y[i])),
    1
  )
  return found && { slope: found.coefficients[0], error: found.errors[0] }
}

/**
 * Number of consecutive days before now whose growth, compared with the same hours of the previous
 * day, resembles the mean growth.
 * @param {Float64Array} t
 * @param {Float64Array} y without the part that the load explains
 * @param {number} slope
 */
function steadyDays (t, y, slope) {
  let agreeing = 0
  for (let day = 0; ; day++) {
    const grown = growthBetween(t, y, day, day + 1)
    if (grown === null) return day === 0 ? null : agreeing
    if (slope <= 0 || grown < AGREES_RATIO * slope * DAY_SECONDS) return agreeing
    agreeing++
  }
}

/**
 * Excess of the last day over all earlier days, but for one exceptional day of four or more. After
 * a quiet weekend a level rises to that of the week before, and does not exceed it.
 * @param {Float64Array} t
 * @param {Float64Array} y without the part that the load explains
 */
function aboveAllDays (t, y) {
  /** @type {number[]} */
  const above = []
  for (let day = 1, grown; (grown = growthBetween(t, y, 0, day)) !== null; day++) above.push(grown)
  above.sort((a, b) => a - b)
  if (above.length < 2) return null
  return above[above.length < LEAST_DAYS_WITH_EXCEPTION ? 0 : 1]
}

/**
 * Growth from an earlier day to a later one: median over the same ten minutes of both.
 * @param {Float64Array} t
 * @param {Float64Array} y
 * @param {number} later days before now
 * @param {number} earlier days before now
 * @returns {number | null} null if too little of the days is known
 */
function growthBetween (t, y, later, earlier) {
  const byTime = new Map(Array.from(t, (time, i) => [Math.round(time / SLOT_SECONDS), y[i]]))
  const end = t[t.length - 1]
  const differences = []
  for (let i = 0; i < t.length; i++) {
    if (t[i] <= end - (later + 1) * DAY_SECONDS || t[i] > end - later * DAY_SECONDS) continue
    const before = byTime.get(Math.round((t[i] - (earlier - later) * DAY_SECONDS) / SLOT_SECONDS))
    if (before !== undefined) differences.push(y[i] - before)
  }
  return differences.length < (DAY_SHARE * DAY_SECONDS) / SLOT_SECONDS ? null : median(differences)
}

module.exports = { unexplainedGrowth, DAY_SECONDS }
