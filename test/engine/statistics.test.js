'use strict'

const simple = require('simple-statistics')
const { median, quantile } = require('../../engine/statistics/quantile')
const { theilSen } = require('../../engine/statistics/theil-sen')
const { mannKendall } = require('../../engine/statistics/mann-kendall')
const { trend } = require('../../engine/statistics/trend')
const { histogramQuantile } = require('../../engine/statistics/histogram')

const { defined } = require('../support/defined')

const range = n => Array.from({ length: n }, (_, i) => i)

describe('quantile', () => {
  // Reproducible random numbers: the generator of Park and Miller.
  let state = 1
  const random = () => (state = state * 48_271 % 2_147_483_647) / 2_147_483_647
  it.each([1, 2, 3, 4, 5, 39, 40, 780, 3000])(
    'equals that of simple-statistics for %i values, and does not reorder them',
    n => {
      for (const values of [
        range(n),
        range(n).reverse(),
        range(n).map(() => 7),
        range(n).map(() => Math.floor(random() * 5)),
        range(n).map(() => random() - 0.5)
      ]) {
        const before = [...values]
        for (const share of [0, 0.1, 0.5, 0.9, 1]) {
          expect(quantile(values, share)).toBe(simple.quantile(values, share))
        }
        expect(median(values)).toBe(simple.median(values))
        expect(values).toEqual(before)
      }
    }
  )
})

describe('theilSen', () => {
  it('finds the slope of a line although a quarter of its points are far off', () => {
    const y = range(20).map(x => x % 4 === 0 ? 1000 : 3 * x + 7)
    const { slope, intercept } = defined(theilSen(range(20), y))
    expect(slope).toBeCloseTo(3, 1)
    expect(intercept).toBeCloseTo(7, 0)
  })
  it('has no slope if no two points differ in x', () => {
    expect(theilSen([1, 1], [2, 3])).toBeNull()
    expect(theilSen([1], [2])).toBeNull()
  })
})

describe('mannKendall', () => {
  it.each([
    ['rising', range(20), 1, 6.13],
    ['falling', range(20).reverse(), -1, -6.13],
    ['constant', range(20).map(() => 5), 0, 0]
  ])('of a %s series', (_, y, tau, z) => {
    expect(mannKendall(y).tau).toBeCloseTo(tau, 10)
    expect(mannKendall(y).z).toBeCloseTo(z, 1)
  })
  it('corrects the variance for ties: ties make it less certain', () => {
    const tied = mannKendall(range(20).map(x => Math.floor(x / 10)))
    expect(tied.z).toBeGreaterThan(3)
    expect(tied.z).toBeLessThan(mannKendall(range(20)).z)
  })
})

describe('trend', () => {
  it('distinguishes a line from a flattening curve by its last third', () => {
    const x = range(60)
    const line = defined(trend(x, x.map(t => 2 * t)))
    const filling = defined(trend(x, x.map(t => 100 * (1 - Math.exp(-t / 10)))))
    expect(line.lastThirdSlope / line.slope).toBeCloseTo(1)
    expect(line.fit).toBeCloseTo(1)
    expect(filling.lastThirdSlope / filling.slope).toBeLessThan(0.3)
  })
  it('includes the previous reading if the last third has only one', () => {
    // V8's major GCs come ever more rarely as a heap grows.
    const x = [1, 2, 4, 7, 12, 20, 34, 57, 96]
    const line = defined(trend(x, x.map(t => 3 * t)))
    expect(line.lastThirdSlope).toBeCloseTo(3)
    expect(line.lateSlope).toBeCloseTo(3)
    const stopped = defined(trend(x, x.map(t => 3 * Math.min(t, 57))))
    expect(stopped.lastThirdSlope).toBe(0)
  })
  it('has the same slope after many points are merged', () => {
    const x = range(5000)
    expect(trend(x, x.map(t => 2 * t))?.slope).toBeCloseTo(2, 3)
    expect(trend(x, x)?.points).toBe(5000)
  })
  it('is unknown below six points', () => {
    expect(trend(range(5), range(5))).toBeNull()
    expect(trend(range(6), range(6))).not.toBeNull()
  })
  it('is not bent by single peaks between the readings of a line', () => {
    // A live heap that grows by 10 MiB a minute, and holds an answer at every third reading.
    const x = range(12)
    const y = x.map(t => 10 + t + 0.2 * Math.sin(9 * t))
    const line = defined(trend(x, y.map((value, t) => (t % 3 === 1 ? value + 30 + 4 * t : value))))
    expect(line.slope).toBeCloseTo(1, 1)
    expect(line.fit).toBeGreaterThan(0.98)
  })
  it('counts a rise that lasts, and values that differ much from each other', () => {
    const x = range(12)
    const stepped = defined(trend(x, x.map(t => (t < 9 ? 10 + 0.01 * t : 60))))
    expect(stepped.rise).toBeLessThan(5)
    expect(stepped.fit).toBeLessThan(0.5)
    const last = defined(trend(x, x.map(t => (t === 11 ? 60 : 10 + 0.01 * t))))
    expect(last.fit).toBeLessThan(0.5)
    const noisy = x.map(t => [3, 40, 11, 70, 25, 52, 8, 66, 31, 90, 5, 47][t])
    expect(defined(trend(x, noisy)).fit).toBeLessThan(0.3)
  })
  it('rises at most by the range of its readings, even if they are clustered', () => {
    const x = [0, 30, 30.1, 30.2, 30.3, 30.4, 30.5, 30.6]
    const y = [7, 8, 10, 12, 14, 16, 18, 20]
    expect(trend(x, y)?.rise).toBe(13)
    expect(trend(x, y.map(value => -value))?.rise).toBe(-13)
  })
})

describe('histogramQuantile', () => {
  it('interpolates inside the bucket', () => {
    expect(histogramQuantile([1, 2, 4], [0, 10, 0, 0], 0.5)).toBeCloseTo(1.5)
  })
  it('counts values above the last bound as that bound', () => {
    expect(histogramQuantile([1, 2], [0, 0, 5], 0.99)).toBe(2)
  })
  it('is 0 when nothing was counted', () => {
    expect(histogramQuantile([1], [0, 0], 0.5)).toBe(0)
  })
})
