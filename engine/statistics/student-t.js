'use strict'

/**
 * Distribution function of Student's t, by its finite series for whole degrees of freedom:
 * Abramowitz & Stegun, Handbook of Mathematical Functions (1964), 26.7.3 and 26.7.4.
 *
 * @param {number} t
 * @param {number} degrees of freedom, a whole number from 1 on
 * @returns {number} probability of a value of at most t
 */
function studentT (t, degrees) {
  const angle = Math.atan(Math.abs(t) / Math.sqrt(degrees))
  const [sine, cosine] = [Math.sin(angle), Math.cos(angle)]
  const isOdd = degrees % 2 === 1
  let term = isOdd ? cosine : 1
  let sum = degrees === 1 ? 0 : term
  for (let k = isOdd ? 3 : 2; k < degrees; k += 2) {
    term *= (k - 1) / k * cosine ** 2
    sum += term
  }
  const within = isOdd ? 2 / Math.PI * (angle + sine * sum) : sine * sum
  return 0.5 + Math.sign(t) * within / 2
}

/**
 * Value that Student's t exceeds with a given probability, found by bisection.
 * @param {number} tail probability, above 0 and at most 0.5
 * @param {number} degrees of freedom, a whole number from 1 on
 * @returns {number}
 */
function studentTQuantile (tail, degrees) {
  let low = 0
  let high = 1
  while (1 - studentT(high, degrees) > tail && high < 1e9) high *= 2
  for (let i = 0; i < 50; i++) {
    const middle = (low + high) / 2
    if (1 - studentT(middle, degrees) > tail) low = middle
    else high = middle
  }
  return high
}

module.exports = { studentT, studentTQuantile }
