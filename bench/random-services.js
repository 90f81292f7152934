'use strict'

/**
 * Random services for bench:weeks: parameters that nobody chose with the rules in view. Their
 * ranges are those within which the rules shall hold: leaks from 2 MiB an hour on, daily swings of
 * up to 300 MiB, caches of up to 400 MiB.
 */

const { SimulatedService, randomAt } = require('./simulated-service')

const SERVICES_OF_SEED = 1000
const DRAWS_OF_SERVICE = 64
/** Shortest life of a service: the bench is about growth over days. */
const LEAST_DAYS = 2
/** Days that a service with weekends is watched. */
const WEEK_DAYS = 9

/**
 * @param {number} place
 * @returns {import('./weeks').Scenario}
 */
function randomService (place) {
  let drawn = 0
  const random = () => randomAt(Math.imul(place, DRAWS_OF_SERVICE) + drawn++)
  const between = (/** @type {number} */ from, /** @type {number} */ to) =>
    Math.round(from + (to - from) * random())
  const chance = (/** @type {number} */ share) => random() < share
  const oneOf = (/** @type {any[]} */ list) => list[Math.floor(random() * list.length)]

  const kind = oneOf(['healthy', 'healthy', 'heap', 'heap', 'native'])
  const rate = Math.round(20 * Math.exp(Math.log(15) * random())) / 10
  const limit = oneOf([null, 768, 1024, 1536, 2048, 4096])
  /** @type {import('./simulated-service').Service & { days?: number }} */
  const service = {
    base: between(80, 600),
    swing: between(0, 300),
    noise: between(2, 10),
    loadNoise: between(2, 15) / 100,
    majorsSeconds: between(30, 400),
    startHour: between(0, 23),
    startDay: between(0, 6),
    seed: between(1, 1e6),
    loadIsSeen: chance(0.7),
    shape: chance(0.75) ? 'sine' : 'office',
    limit,
    heapLimit: limit === null ? 4096 : Math.round(limit * between(65, 80) / 100)
  }
  if (kind === 'heap') service.heapLeak = rate
  if (kind === 'native') service.nativeLeak = rate
  if (kind !== 'healthy') service.leaksByLoad = chance(0.25)
  if (chance(0.25)) Object.assign(service, { weekend: between(30, 80) / 100, days: WEEK_DAYS })
  if (chance(0.25)) {
    Object.assign(service, { fill: between(50, 400), fillHours: between(1, 40) / 10 })
  }
  if (chance(0.25)) service.nativeSwing = between(50, 200)
  if (chance(0.2)) {
    Object.assign(service, {
      spike: between(50, 200),
      spikeEveryHours: between(4, 36),
      spikeHours: between(2, 20) / 10
    })
  }
  return { name: `${kind} ${place}`, ...service }
}

/**
 * @param {import('./simulated-service').Service} service
 * @returns {boolean} true: it lives for two days, and without its leak it never reaches a limit
 */
const fits = service =>
  new SimulatedService({ ...service, heapLeak: 0, nativeLeak: 0 })
    .endSeconds(WEEK_DAYS) === Infinity &&
  new SimulatedService(service).endSeconds(LEAST_DAYS) === Infinity

/**
 * @param {number} count
 * @param {number} seed
 * @returns {import('./weeks').Scenario[]} services that fit their limits without a leak
 */
function randomServices (count, seed) {
  /** @type {import('./weeks').Scenario[]} */
  const services = []
  for (let i = 0; services.length < count; i++) {
    const service = randomService(seed * SERVICES_OF_SEED + i)
    if (fits(service)) services.push(service)
  }
  return services
}

module.exports = { randomServices }
