'use strict'

/**
 * `npm run bench:weeks` checks verdicts on services that live for days. It computes their frames
 * (simulated-service.js) and passes them to the code that evaluates live targets, without sockets
 * or a clock. For each service it prints when its leak was suspected and confirmed, the leak's
 * share of the way to the limit at these times, and the number of changed states.
 *
 *   npm run bench:weeks
 *   npm run bench:weeks -- --days 10 --only native --frame-seconds 1 --judge-seconds 2
 *   npm run bench:weeks -- --service '{"heapLeak":2,"swing":300}'
 *   npm run bench:weeks -- --random 20 --seed 7
 *
 * Ends with 1 when one of the limits below is broken.
 */

const { parseArgs } = require('node:util')
const { findCase } = require('../engine/verdicts/case')
const { evaluate } = require('../engine/verdicts/evaluate')
const { Target } = require('../engine/history/target')
const { randomServices } = require('./random-services')
const { SimulatedService, HOUR, DAY } = require('./simulated-service')

/**
 * A live target sends a frame each second and is judged every two seconds. Both are rarer here, as
 * growth over days does not depend on it.
 */
const FRAME_SECONDS = 30
const JUDGE_SECONDS = 60
/** Thresholds of the bench. */
const SUSPECTED_WITHIN_SECONDS = DAY
const CONFIRMED_BEFORE_SHARE = 0.5
/** Horizon of a prediction without a near limit: a few days. */
const CONFIRMED_WITHIN_SECONDS = 4 * DAY
const MOST_CHANGES = 4
const NOT_SUSPECTED_FROM_SECONDS = 2 * DAY
const ETA_ERROR = 0.5
/** Largest error of a printed time by rounding and a delay of one or two frames. */
const ETA_SLACK_SECONDS = 1800
/**
 * A limit that is this near is told although a cache may fill below it: somebody must act. In a
 * healthy service any other time to a limit is wrong.
 */
const SOON_SECONDS = HOUR
const LEAKS = Object.freeze({ heapLeak: 'js-heap-leak', nativeLeak: 'native-memory-leak' })
/** Diagnoses of growth. No simulated service leaks handles: they follow its load. */
const GROWTH = [...Object.values(LEAKS), 'resource-leak']

/** @typedef {import('./simulated-service').Service & { name: string, days?: number }} Scenario */

/** @type {Scenario[]} */
const SCENARIOS = [
  { name: 'healthy, flat' },
  { name: 'healthy, swing 100', swing: 100 },
  { name: 'healthy, swing 200, starts at the peak', swing: 200, startHour: 16 },
  { name: 'healthy, swing 300', swing: 300, startHour: 4, noise: 10 },
  { name: 'healthy, swing 300, load unseen', swing: 300, startHour: 5, loadIsSeen: false },
  {
    name: 'healthy, swing 300, load unseen, noon',
    swing: 300,
    startHour: 12,
    loadIsSeen: false,
    noise: 10
  },
  { name: 'healthy, swing 300, 1.5 GiB', swing: 300, limit: 1536, heapLimit: 1152 },
  { name: 'healthy, swing 250, weekends', swing: 250, weekend: 0.4, days: 9 },
  {
    name: 'healthy, weekends, load unseen',
    swing: 250,
    weekend: 0.4,
    days: 9,
    startDay: 5,
    loadIsSeen: false
  },
  { name: 'healthy, office hours', swing: 300, shape: 'office', noise: 8 },
  { name: 'healthy, office hours, load unseen', swing: 300, shape: 'office', loadIsSeen: false },
  { name: 'healthy, cache of 300 fills in hours', fill: 300, fillHours: 3, swing: 100 },
  { name: 'healthy, cache of 400 fills in minutes', fill: 400, fillHours: 0.1 },
  { name: 'healthy, Buffers swing by 200', nativeSwing: 200, swing: 50 },
  {
    name: 'healthy, cache of 300 fills in a night',
    fill: 300,
    fillHours: 2,
    base: 309,
    limit: 2048,
    heapLimit: 1434,
    majorsSeconds: 292,
    startHour: 5,
    startDay: 1,
    noise: 4.9,
    loadNoise: 0.1,
    weekend: 0.3,
    seed: 161351
  },
  {
    name: 'healthy, cache of 300 fills in ten hours, swing 170',
    fill: 284,
    fillHours: 3.3,
    swing: 170,
    base: 156,
    limit: 1536,
    heapLimit: 1075,
    majorsSeconds: 196,
    startHour: 10,
    startDay: 6,
    noise: 5.2,
    loadNoise: 0.1,
    weekend: 0.4,
    seed: 118602
  },
  {
    name: 'healthy, quiet weekends, load unseen, starts at night',
    swing: 142,
    weekend: 0.7,
    days: 8,
    loadIsSeen: false,
    base: 116,
    majorsSeconds: 337,
    startHour: 23,
    startDay: 2,
    limit: 1536,
    heapLimit: 1229,
    noise: 8,
    seed: 234630
  },
  {
    name: 'healthy, Buffers swing up to the room beside the heap',
    nativeSwing: 198,
    base: 384,
    majorsSeconds: 49,
    startHour: 8,
    limit: 1024,
    heapLimit: 717,
    seed: 878488
  },
  {
    name: 'healthy, RSS near the container limit by day',
    base: 123,
    swing: 244,
    nativeSwing: 165,
    noise: 6,
    loadNoise: 0.14,
    majorsSeconds: 312,
    startHour: 22,
    startDay: 4,
    limit: 768,
    heapLimit: 599,
    weekend: 0.44,
    days: 9,
    seed: 653569
  },
  {
    name: 'healthy, rises by 295 in an hour, load unseen',
    base: 190,
    swing: 295,
    shape: 'office',
    loadIsSeen: false,
    noise: 5,
    loadNoise: 0.15,
    majorsSeconds: 253,
    startHour: 3,
    startDay: 1,
    limit: 1024,
    heapLimit: 737,
    seed: 180197
  },
  {
    name: 'healthy, cache of 284 fills in hours, small heap',
    fill: 284,
    fillHours: 0.8,
    base: 124,
    swing: 85,
    spike: 90,
    spikeEveryHours: 7,
    spikeHours: 1.2,
    nativeSwing: 77,
    noise: 3,
    loadNoise: 0.09,
    majorsSeconds: 111,
    startHour: 16,
    startDay: 4,
    limit: 1024,
    heapLimit: 707,
    seed: 494794
  },
  {
    name: 'healthy, cache of 111 fills beside a morning',
    fill: 111,
    fillHours: 3.9,
    base: 534,
    swing: 198,
    noise: 2,
    loadNoise: 0.11,
    majorsSeconds: 82,
    startHour: 1,
    startDay: 2,
    limit: 1536,
    heapLimit: 1060,
    weekend: 0.65,
    days: 9,
    seed: 885596
  },
  {
    name: 'healthy, readings that scatter, starts on a weekend',
    base: 423,
    swing: 20,
    noise: 7,
    loadNoise: 0.07,
    majorsSeconds: 327,
    startHour: 5,
    startDay: 5,
    shape: 'office',
    loadIsSeen: false,
    seed: 253535
  },
  { name: 'leak 2, flat', heapLeak: 2 },
  { name: 'leak 2, swing 300', heapLeak: 2, swing: 300, startHour: 16, noise: 8 },
  {
    name: 'leak 2, swing 300, load unseen',
    heapLeak: 2,
    swing: 300,
    startHour: 16,
    loadIsSeen: false
  },
  {
    name: 'leak 2, small heap, 512 MiB',
    heapLeak: 2,
    base: 120,
    limit: 512,
    heapLimit: 320,
    swing: 60
  },
  { name: 'leak 5, swing 200, 2 GiB', heapLeak: 5, swing: 200, limit: 2048, heapLimit: 1400 },
  {
    name: 'leak 5 by request, swing 200, weekends',
    heapLeak: 5,
    swing: 200,
    weekend: 0.4,
    leaksByLoad: true,
    days: 9
  },
  {
    name: 'leak 10, swing 300, 4 GiB',
    heapLeak: 10,
    swing: 300,
    limit: 4096,
    heapLimit: 3000,
    noise: 10
  },
  {
    name: 'leak 7, swing 250, 2 GiB',
    heapLeak: 7,
    swing: 250,
    limit: 2048,
    heapLimit: 1500,
    noise: 8
  },
  { name: 'leak 20, flat, 1 GiB', heapLeak: 20, base: 300, limit: 1024, heapLimit: 768 },
  { name: 'leak 20, swing 150, 1.5 GiB', heapLeak: 20, swing: 150, limit: 1536, heapLimit: 1152 },
  { name: 'leak 20, swing 300, no limit', heapLeak: 20, swing: 300 },
  {
    name: 'leak 20, swing 200, 1.5 GiB',
    heapLeak: 20,
    swing: 200,
    limit: 1536,
    heapLimit: 1100,
    base: 300
  },
  {
    name: 'leak 10 by request, swing 60, 1 GiB',
    heapLeak: 10,
    swing: 60,
    limit: 1024,
    heapLimit: 700,
    base: 200,
    leaksByLoad: true,
    startHour: 14
  },
  {
    name: 'leak 10, after a cache of 200',
    heapLeak: 10,
    fill: 200,
    fillHours: 2,
    swing: 100,
    limit: 2048,
    heapLimit: 1500
  },
  {
    name: 'healthy, cache of 254 fills in an hour',
    fill: 254,
    fillHours: 0.5,
    base: 360,
    swing: 119,
    noise: 3,
    majorsSeconds: 235,
    startHour: 12,
    startDay: 3,
    shape: 'office',
    limit: 1536,
    heapLimit: 1121,
    seed: 798881
  },
  {
    name: 'leak 4 by request, office hours, weekends',
    heapLeak: 4.2,
    leaksByLoad: true,
    base: 147,
    swing: 78,
    noise: 8,
    majorsSeconds: 208,
    startHour: 4,
    startDay: 4,
    shape: 'office',
    weekend: 0.44,
    days: 9,
    seed: 54394
  },
  { name: 'native 2, flat', nativeLeak: 2 },
  { name: 'native 3, swing 200', nativeLeak: 3, swing: 200 },
  {
    name: 'native 3, swing 300, 2 GiB',
    nativeLeak: 3,
    swing: 300,
    limit: 2048,
    heapLimit: 1200,
    base: 400
  },
  { name: 'native 10, swing 200, 2 GiB', nativeLeak: 10, swing: 200, limit: 2048, heapLimit: 1200 },
  {
    name: 'native 15, swing 280, starts at seven',
    nativeLeak: 15,
    swing: 280,
    limit: 2048,
    heapLimit: 1200,
    startHour: 7
  },
  {
    name: 'native 2, quiet weekends, garbage of minutes',
    nativeLeak: 2.2,
    base: 568,
    swing: 17,
    noise: 8,
    loadNoise: 0.11,
    majorsSeconds: 164,
    startHour: 5,
    startDay: 3,
    weekend: 0.61,
    days: 9,
    limit: 1024,
    heapLimit: 707,
    seed: 29842
  },
  { name: 'native 20, 1.5 GiB', nativeLeak: 20, swing: 100, limit: 1536, heapLimit: 1024 },
  {
    name: 'native 11 by request, weekends, Buffers swing by 180, no limit',
    nativeLeak: 10.8,
    leaksByLoad: true,
    nativeSwing: 184,
    base: 127,
    swing: 3,
    noise: 6,
    majorsSeconds: 215,
    startHour: 13,
    startDay: 5,
    weekend: 0.31,
    days: 9,
    limit: null,
    heapLimit: 4096,
    seed: 705497
  }
]

/**
 * Judges a service and returns its verdicts.
 * @param {import('./simulated-service').Service} scenario
 * @param {object} [options]
 * @param {number} [options.days] the service ends earlier if it reaches a limit
 * @param {number} [options.frameSeconds]
 * @param {number} [options.judgeSeconds]
 */
function simulate (
  scenario,
  { days = 5, frameSeconds = FRAME_SECONDS, judgeSeconds = JUDGE_SECONDS } = {}
) {
  const service = new SimulatedService(scenario)
  const target = new Target({ hello: service.hello, name: 'api', thread: 'main' })
  const endSeconds = service.endSeconds(400)
  const latestEndSeconds = service.endSeconds(400, false)
  const until = Math.min(days * DAY, endSeconds - HOUR / 4)
  /** @type {{ seconds: number, diagnosis: string, state: string, summary: string }[]} */
  const changes = []
  /**
   * @type {{ seconds: number, diagnosis: string, saysSeconds: number, isSeconds: number,
   *   atMostSeconds: number, summary: string }[]} isSeconds: until a single reading reaches the
   *   limit; atMostSeconds: until all of them do
   */
  const times = []
  for (let seconds = frameSeconds; seconds <= until; seconds += frameSeconds) {
    target.take(
      /** @type {any} */ (service.frame(seconds)),
      service.hello.startedAtUnixMs + 1000 * seconds
    )
    for (const { diagnosis, state, summary } of evaluate(target, {
      everySeconds: judgeSeconds,
      onError: error => {
        throw error
      }
    })) {
      changes.push({ seconds, diagnosis, state, summary })
    }
    if (seconds % 1800 >= frameSeconds) continue
    for (const { diagnosis, state, summary, impact } of findCase(target).verdicts) {
      if (state !== 'suspected' && state !== 'confirmed') continue
      const saysSeconds = timeIn(`${summary} ${impact}`)
      if (saysSeconds !== null) {
        times.push({
          seconds,
          diagnosis,
          saysSeconds,
          isSeconds: endSeconds - seconds,
          atMostSeconds: latestEndSeconds - seconds,
          summary
        })
      }
    }
  }
  return { changes, times, endSeconds, untilSeconds: until }
}

/** Time in the format of the verdicts' texts. @type {Record<string, number>} */
const UNIT_SECONDS = { s: 1, min: 60, h: HOUR, days: DAY }

/** The time that a text predicts, in seconds. @param {string} text */
function timeIn (text) {
  const [, number, unit] = /about ([\d.,]+) (s|min|h|days)\b/.exec(text) ?? []
  return unit ? Number(number.replaceAll(',', '')) * UNIT_SECONDS[unit] : null
}

/**
 * Largest number of changes by one cause. Those by a cache end when the diagnosis is ruled out
 * after the cache is full. If it never is, the changes until the cache is nearly full are by the
 * cache. Later ones belong to a leak or to the load.
 * @param {Scenario} scenario
 * @param {readonly { seconds: number, state: string }[]} changes of one diagnosis
 * @returns {number}
 */
function mostChanges ({ fill, fillHours = 0 }, changes) {
  if (!fill) return changes.length
  const fills = (/** @type {{ seconds: number }} */ { seconds }) => seconds < fillHours * HOUR
  const out = changes.findIndex(change => change.state === 'ok' && !fills(change))
  const end = 1 + (out >= 0 ? out : changes.findLastIndex(fills))
  return Math.max(end, changes.length - end)
}

/**
 * Compares verdicts with the limits.
 * @param {Scenario} scenario
 * @param {ReturnType<typeof simulate>} said
 */
function judge (scenario, { changes, times, endSeconds, untilSeconds }) {
  const cause = scenario.heapLeak ? LEAKS.heapLeak : scenario.nativeLeak ? LEAKS.nativeLeak : null
  /** @type {string[]} */
  const broken = []
  /** @type {Record<string, number>} */
  const counts = {}
  for (const { diagnosis } of changes) counts[diagnosis] = (counts[diagnosis] ?? 0) + 1
  for (const diagnosis of Object.keys(counts)) {
    const count = mostChanges(scenario, changes.filter(change => change.diagnosis === diagnosis))
    if (count > MOST_CHANGES) broken.push(`${diagnosis} changed its state ${count} times`)
  }
  const first = (/** @type {string[]} */ ...states) => changes.find(change => change.diagnosis === cause && states.includes(change.state))?.seconds ?? null
  const suspected = first('suspected', 'confirmed')
  const confirmed = first('confirmed')
  if (cause) {
    const half = CONFIRMED_BEFORE_SHARE * endSeconds
    if (suspected === null || suspected > Math.min(SUSPECTED_WITHIN_SECONDS, half)) {
      broken.push(`suspected after ${inHours(suspected)}`)
    }
    const within = Math.min(half, CONFIRMED_WITHIN_SECONDS)
    if (untilSeconds >= within && (confirmed === null || confirmed > within)) {
      broken.push(`confirmed after ${inHours(confirmed)}, half of the way is ${inHours(half)}`)
    }
    const last = changes.findLast(({ diagnosis }) => diagnosis === cause)
    if (last?.state === 'ok' || last?.state === 'unknown') {
      broken.push(`${last.state} at the end: ${last.summary}`)
    }
  }
  for (const diagnosis of GROWTH) {
    if (diagnosis === cause) continue
    let state = 'unknown'
    for (const change of [
      ...changes.filter(change => change.diagnosis === diagnosis),
      { seconds: untilSeconds, state: 'end' }
    ]) {
      if (state === 'confirmed') {
        broken.push(`${diagnosis} was confirmed until ${inHours(change.seconds)}`)
      }
      if (state === 'suspected' && change.seconds > NOT_SUSPECTED_FROM_SECONDS) {
        broken.push(`${diagnosis} was suspected until ${inHours(change.seconds)}`)
      }
      state = change.state
    }
  }
  const within = (/** @type {number} */ seconds) => Math.max(ETA_SLACK_SECONDS, ETA_ERROR * seconds)
  const wrong = times.filter(
    ({ saysSeconds, isSeconds, atMostSeconds }) =>
      (isSeconds === Infinity && saysSeconds > SOON_SECONDS) ||
      saysSeconds < isSeconds - within(isSeconds) ||
      saysSeconds > atMostSeconds + within(atMostSeconds)
  )
  if (wrong.length > 0) {
    const [{ seconds, saysSeconds, isSeconds, diagnosis }] = wrong
    broken.push(
      `${wrong.length} of ${times.length} times to the limit are wrong, as ${diagnosis} after ` +
        `${inHours(seconds)}: ${inHours(saysSeconds)}, it was ${inHours(isSeconds)}`
    )
  }
  return {
    name: scenario.name,
    cause,
    suspectedHours: hours(suspected),
    confirmedHours: hours(confirmed),
    endHours: hours(Number.isFinite(endSeconds) ? endSeconds : null),
    confirmedShareRatio: confirmed === null ? null : Math.round(100 * confirmed / endSeconds) / 100,
    timesToTheLimit: times.length,
    changes: counts,
    broken
  }
}

/** @param {number | null} seconds */
const hours = seconds => seconds === null ? null : Math.round(10 * seconds / HOUR) / 10
/** @param {number | null} seconds */
const inHours = seconds => seconds === null ? 'never' : `${hours(seconds)} h`

/** @param {ReturnType<typeof judge>} row */
function print ({
  name,
  cause,
  suspectedHours,
  confirmedHours,
  endHours,
  confirmedShareRatio,
  timesToTheLimit,
  changes,
  broken
}) {
  const of = Object.entries(changes)
    .filter(([diagnosis, count]) => count > 1 || diagnosis === cause)
    .map(([diagnosis, count]) => `${diagnosis} ${count}`)
  console.log(
    `${broken.length > 0 ? 'BROKEN' : 'ok    '} ${name.padEnd(40)} suspected ` +
      `${String(suspectedHours ?? '–').padStart(5)} h, confirmed ` +
        `${String(confirmedHours ?? '–').padStart(5)} h` +
      ` (${confirmedShareRatio ?? '–'} of ${endHours ?? '∞'} h), ${timesToTheLimit} times told; ` +
        `changes: ${of.join(', ') || 'none'}`
  )
  for (const text of broken) console.log(`         ${text}`)
}

function main () {
  const { values: given } = parseArgs({
    options: {
      days: { type: 'string' },
      only: { type: 'string', default: '' },
      service: { type: 'string' },
      random: { type: 'string' },
      seed: { type: 'string', default: '1' },
      'frame-seconds': { type: 'string', default: String(FRAME_SECONDS) },
      'judge-seconds': { type: 'string', default: String(JUDGE_SECONDS) },
      changes: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false }
    }
  })
  if (given.help) {
    console.log(`Usage: npm run bench:weeks -- [options]

  --days N             days that each service is watched (default 5, some 9)
  --only TEXT          those whose name contains it
  --service JSON       one of your own: the properties are in bench/simulated-service.js
  --random N           N services with random properties, instead of those of the bench
  --seed N             other random services, reproducible (default 1)
  --frame-seconds N    simulated time between frames (default ${FRAME_SECONDS}; live 1)
  --judge-seconds N    simulated time between evaluations (default ${JUDGE_SECONDS}; live 2)
  --changes            print each change of a state
  --json               one object a service, and nothing else`)
    return
  }
  for (const name of /** @type {const} */ (['random', 'seed'])) {
    const text = given[name]
    if (text !== undefined && !/^[1-9]\d{0,5}$/.test(text)) {
      throw new Error(`--${name}: expected a whole number from 1 to 999999, got ${text}`)
    }
  }
  const scenarios = given.service
    ? [{ name: given.service, ...JSON.parse(given.service) }]
    : given.random
      ? randomServices(Number(given.random), Number(given.seed))
      : SCENARIOS.filter(({ name }) => name.includes(given.only))
  let failed = 0
  for (const scenario of scenarios) {
    const said = simulate(scenario, {
      days: Number(given.days ?? scenario.days ?? 5),
      frameSeconds: Number(given['frame-seconds']),
      judgeSeconds: Number(given['judge-seconds'])
    })
    const row = judge(scenario, said)
    if (row.broken.length > 0) failed++
    if (given.json) console.log(JSON.stringify(row))
    else print(row)
    if (given.random && row.broken.length > 0 && !given.json) {
      console.log(`         --service '${JSON.stringify({ ...scenario, name: undefined })}'`)
    }
    if (!given.changes) continue
    for (const { seconds, diagnosis, state, summary } of said.changes) {
      if (row.changes[diagnosis] > 1) {
        console.log(`         ${inHours(seconds)} ${diagnosis} ${state}: ${summary}`)
      }
    }
  }
  if (!given.json) console.log(`${scenarios.length} services, ${failed} broken`)
  process.exitCode = failed > 0 ? 1 : 0
}

if (require.main === module) main()

module.exports = { simulate, judge, SCENARIOS }
