'use strict'

const { slopeBound } = require('../../engine/statistics/slope-bound')
const { studentT, studentTQuantile } = require('../../engine/statistics/student-t')
const { seeded } = require('../support/random')

describe("Student's t", () => {
  // Tables of the t distribution, upper tail.
  it.each([
    [0.05, 1, 6.314], [0.01, 2, 6.965], [0.005, 3, 5.841], [0.025, 4, 2.776], [0.001, 10, 4.144],
    [0.05, 30, 1.697]
  ])('exceeds with probability %d at %d degrees of freedom %d', (tail, degrees, value) => {
    expect(studentTQuantile(tail, degrees)).toBeCloseTo(value, 3)
    expect(1 - studentT(value, degrees)).toBeCloseTo(tail, 4)
  })
  it('is symmetric', () => {
    expect(studentT(0, 5)).toBe(0.5)
    expect(studentT(-1, 5)).toBeCloseTo(1 - studentT(1, 5), 12)
  })
})

describe('the lower bound of a slope', () => {
  const x = Array.from({ length: 16 }, (_, i) => i)

  it('is the exact bound of Kendall’s test', () => {
    // Four values have 24 orders, and one of these has no falling pair: the least level is 1/24.
    const rising = [0, 1, 2.5, 4.5]
    expect(slopeBound([0, 1, 2, 3], rising, 1 / 24 + 1e-9)).toEqual({ slope: 1.5, lower: 1 })
    expect(slopeBound([0, 1, 2, 3], rising, 1 / 24 - 1e-9).lower).toBe(-Infinity)
  })
  it('exceeds the true slope as rarely as stated, even with heavy tails', () => {
    const { uniform } = seeded(1)
    let exceeded = 0
    for (let trial = 0; trial < 4000; trial++) {
      const noise = () => 1 / (uniform() - 0.5) // Cauchy noise: a distribution without a mean.
      const { lower } = slopeBound(x, x.map(i => 3 * i + noise()), 0.05)
      if (lower > 3) exceeded++
    }
    expect(exceeded / 4000).toBeLessThan(0.06)
    expect(exceeded / 4000).toBeGreaterThan(0.02)
  })
  it('finds a slope among steps', () => {
    const y = x.map(i => 100 * i + (i > 6 ? 900 : 0) + (i === 0 ? 2000 : 0))
    expect(slopeBound(x, y, 0.001).lower).toBe(100)
  })
})
