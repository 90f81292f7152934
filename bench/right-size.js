'use strict'

/**
 * `npm run bench:right-size` compares sizes of `memwatch right-size` and of Kubernetes' Vertical
 * Pod Autoscaler (vpa-recommender.js) on simulated services (simulated-service.js). At the end of
 * each day both recommend sizes from the days before. The following days show whether memory
 * exceeded the limit, and which part of the limit was not needed. A kill is reported to the
 * recommender that caused it.
 *
 *   npm run bench:right-size
 *   npm run bench:right-size -- --only cache --days 28
 *   npm run bench:right-size -- --write        also renew the tables of docs/right-size.md
 */

const fs = require('node:fs')
const path = require('node:path')
const { parseArgs } = require('node:util')
const { SimulatedService, DAY } = require('./simulated-service')
const { VpaRecommender } = require('./vpa-recommender')
const { simulate } = require('./weeks')
const { heapResident } = require('../engine/memory/frame-parts')
const { NO_WORKERS } = require('../engine/history/tracks')
const { chosenSizes } = require('../engine/v8/heap-sizing')
const { readNodeVersion } = require('../engine/v8/node-versions')
const { SizeDays } = require('../engine/v8/size-days')
const { rightSize, LEAKS } = require('../engine/v8/right-size')

const MIB = 2 ** 20
const MINUTE = 60
const PAGE = path.join(__dirname, '../docs/right-size.md')
const DAYS = 21
/** Length of the history from which sizes are recommended. */
const HISTORY_DAYS = 14
/** Days for which manually applied sizes stay in use. */
const HORIZON_DAYS = 7
/** Start of the simulated time: a Monday, 00:00 UTC. */
const START_UNIX_SECONDS = 1_759_708_800
const VERSION = readNodeVersion('22')
const HOST = { bytes: 16 * 2 ** 30, given: true }

/** @typedef {import('./simulated-service').Service & { name: string, limit: number }} Scenario */

/** Services with a generous limit. @type {Scenario[]} */
const SCENARIOS = [
  { name: 'flat', base: 180, limit: 1024 },
  { name: 'daily swing of 100 MiB', base: 200, swing: 100, limit: 1024 },
  { name: 'daily swing of 300 MiB', base: 300, swing: 300, limit: 2048, noise: 10 },
  { name: 'office hours', base: 250, swing: 300, shape: 'office', limit: 2048, noise: 8 },
  { name: 'quiet weekends', base: 300, swing: 250, weekend: 0.3, limit: 2048 },
  {
    name: 'quiet weekends, starts on a Friday',
    base: 300,
    swing: 250,
    weekend: 0.3,
    startDay: 4,
    limit: 2048
  },
  { name: 'cache fills in hours', base: 200, fill: 300, fillHours: 3, swing: 60, limit: 2048 },
  { name: 'cache fills in two days', base: 200, fill: 400, fillHours: 48, swing: 60, limit: 2048 },
  { name: 'Buffers swing by 300 MiB', base: 120, nativeSwing: 300, swing: 40, limit: 2048 },
  { name: 'nightly job, +250 MiB', base: 200, swing: 60, spike: 250, limit: 2048 },
  {
    name: 'weekly job, +300 MiB',
    base: 250,
    swing: 80,
    spike: 300,
    spikeEveryHours: 168,
    limit: 2048
  },
  {
    name: 'rare job, +250 MiB on one day in ten',
    base: 200,
    swing: 60,
    spike: 250,
    spikeChance: 0.1,
    limit: 2048
  },
  {
    name: 'rare job, +400 MiB on one day in twenty',
    base: 200,
    swing: 60,
    spike: 400,
    spikeChance: 0.05,
    limit: 2048
  },
  { name: 'noisy load', base: 250, swing: 200, loadNoise: 0.3, noise: 30, limit: 2048 },
  { name: 'large heap', base: 1500, swing: 500, noise: 20, limit: 6144, heapLimit: 4096 }
]

/** Services that leak, for which no size is right. @type {Scenario[]} */
const LEAKING = [
  { name: 'heap leak of 5 MiB an hour', heapLeak: 5 },
  { name: 'native leak of 5 MiB an hour', nativeLeak: 5 }
].map(leak => ({ base: 200, swing: 100, limit: 2048, heapLimit: 1400, ...leak }))

/**
 * Simulates a service minute by minute.
 * @typedef {import('../engine/v8/size-days').SizeReading & { liveHeapBytes: number,
 *   heapUsedBytes: number, besideBytes: number }} Minute
 *
 * @param {Scenario} scenario
 * @param {number} days
 * @param {number} seed
 * @returns {Minute[][]} minutes of each day
 */
function live (scenario, days, seed) {
  const service = new SimulatedService({ heapLimit: 4096, startHour: 0, ...scenario, seed })
  return Array.from({ length: days }, (_, day) =>
    Array.from({ length: DAY / MINUTE }, (_, minute) => {
      const seconds = day * DAY + (minute + 1) * MINUTE
      const { values } = service.frame(seconds)
      const own = /** @type {number} */ (values.rssBytes)
      return {
        unixSeconds: START_UNIX_SECONDS + seconds - 1,
        ownBytes: own,
        heapUsedBytes: /** @type {number} */ (values.heapUsedBytes),
        liveHeapBytes: values.liveHeapBytes ?? 0,
        besideBytes: own - heapResident(values, NO_WORKERS)
      }
    }))
}

/**
 * Sizes of one method at the end of one day.
 * @typedef {object} Sized
 * @property {number} requestBytes
 * @property {number} limitBytes
 * @property {number} oldBytes maximum of the old generation in the container
 *
 * @typedef {{ learn: (day: Minute[]) => void, size: () => Sized, kill: (at: Minute) => void }} Method
 */

/**
 * @param {Scenario} scenario
 * @returns {Method}
 */
function memwatchMethod ({ limit }) {
  /** @type {Minute[][]} */
  const past = []
  /** @type {import('../engine/v8/right-size').MemoryDeath[]} */
  const deaths = []
  /** @type {import('../engine/v8/right-size').Present} */
  let present = { memoryLimitBytes: limit * MIB, heapSizeLimitBytes: null }
  return {
    learn: day => {
      past.push(day)
      past.splice(0, past.length - HISTORY_DAYS)
    },
    kill: () => deaths.push('oom_kill'),
    size () {
      const days = new SizeDays()
      for (const day of past) for (const minute of day) days.add('pod', minute)
      const { sizes } = rightSize({
        days,
        leaks: [],
        deaths,
        present,
        process: {
          version: VERSION,
          flags: { nodeOptions: [], execArgv: [] },
          host: HOST,
          cgroup: 'v2',
          limitOnParent: false
        }
      })
      if (!sizes) throw new Error('a day of minutes is a history')
      const heapSizeLimitBytes = sizes.oldBytes + 3 * sizes.semiSpaceBytes
      present = { memoryLimitBytes: sizes.limitBytes, heapSizeLimitBytes }
      return sizes
    }
  }
}

/**
 * Method of VPA: it sets the request, and keeps the pod's proportion of limit to request, here 1.
 * V8 then derives its heap size from the limit, or from the flag of the service.
 * @param {(limitBytes: number) => number} oldFor
 * @returns {Method}
 */
function vpaMethod (oldFor) {
  const vpa = new VpaRecommender()
  let requestBytes = 0
  return {
    learn: day => { for (const { unixSeconds, ownBytes } of day) vpa.add(unixSeconds, ownBytes) },
    kill: ({ unixSeconds }) => vpa.addKill(unixSeconds, requestBytes),
    size () {
      const { targetBytes } = vpa.recommendation
      requestBytes = targetBytes
      return { requestBytes, limitBytes: targetBytes, oldBytes: oldFor(targetBytes) }
    }
  }
}

/** Old generation that V8 chooses by itself. @param {number} limitBytes */
const chosenOld = limitBytes =>
  chosenSizes(VERSION.v8Major, VERSION.v8Minor, limitBytes).oldBytes

/** @type {Record<string, (scenario: Scenario) => Method>} */
const METHODS = {
  memwatch: memwatchMethod,
  'VPA, heap by a flag of the app': () => vpaMethod(() => Infinity),
  'VPA, heap by V8': () => vpaMethod(chosenOld)
}

/**
 * @typedef {object} Score
 * @property {number} days number of judged days
 * @property {number} killed number of days with RSS above the limit
 * @property {number} full number of days with a live heap above the old generation
 * @property {number} missedWeeks number of recommendations that a day of the next week exceeded
 * @property {number} aboveRequest number of minutes above the request
 * @property {number} limitBytes sum over days
 * @property {number} requestBytes sum over days
 * @property {number} peakBytes sum over days
 * @property {number} configuredBytes sum over days
 *
 * @param {Scenario} scenario
 * @param {(scenario: Scenario) => Method} make
 * @param {Minute[][]} days
 * @returns {Score}
 */
function backtest (scenario, make, days) {
  const method = make(scenario)
  /** @type {Score} */
  const score = {
    days: 0, killed: 0, full: 0, missedWeeks: 0, aboveRequest: 0, limitBytes: 0, requestBytes: 0,
    peakBytes: 0, configuredBytes: 0
  }
  const peaks = days.map(day => Math.max(...day.map(({ ownBytes }) => ownBytes)))
  const lives = days.map(day => Math.max(...day.map(({ liveHeapBytes }) => liveHeapBytes)))
  for (let d = 0; d + 1 < days.length; d++) {
    method.learn(days[d])
    const { requestBytes, limitBytes, oldBytes } = method.size()
    const exceeds = (/** @type {number} */ day) => peaks[day] > limitBytes || lives[day] > oldBytes
    score.days++
    if (peaks[d + 1] > limitBytes) score.killed++
    if (lives[d + 1] > oldBytes) score.full++
    const next = days.slice(d + 1, d + 1 + HORIZON_DAYS)
    if (next.some((_, i) => exceeds(d + 1 + i))) score.missedWeeks++
    score.aboveRequest += days[d + 1].filter(({ ownBytes }) => ownBytes > requestBytes).length
    score.limitBytes += limitBytes
    score.requestBytes += requestBytes
    score.peakBytes += peaks[d + 1]
    score.configuredBytes += scenario.limit * MIB
    const kill = days[d + 1].find(({ ownBytes }) => ownBytes > limitBytes)
    if (kill) method.kill(kill)
  }
  return score
}

/**
 * @param {Score[]} scores
 * @returns {Score} their sum
 */
const add = scores => scores.reduce((sum, score) => /** @type {Score} */ (Object.fromEntries(
  Object.keys(sum).map(name => [name, sum[/** @type {keyof Score} */ (name)] +
    score[/** @type {keyof Score} */ (name)]])
)))

/** @param {number} ratio */
const percent = ratio => `${Math.round(100 * ratio)} %`

/**
 * @param {Score} score
 * @returns {string[]} cells
 */
const cellsOf = ({
  days, killed, full, missedWeeks, aboveRequest, limitBytes, requestBytes, peakBytes,
  configuredBytes
}) => [
  `${killed} of ${days}`,
  String(full),
  percent(missedWeeks / days),
  (100 * aboveRequest / days / (DAY / MINUTE)).toFixed(1) + ' %',
  percent(limitBytes / peakBytes - 1),
  percent(1 - limitBytes / configuredBytes),
  percent(1 - requestBytes / configuredBytes)
]

const HEADS = [
  'killed: days with RSS above the limit',
  'days out of heap',
  'weeks with a miss',
  'time above the request',
  'limit above the peak',
  'saved of the limit',
  'saved of the request'
]

/** @param {string[][]} rows the first is the head */
const markdown = rows => [rows[0], rows[0].map(() => '---'), ...rows.slice(1)]
  .map(row => `| ${row.join(' | ')} |`).join('\n')

/**
 * Result for a leak: the day on which memwatch says that no size fixes it, and the sizes that VPA
 * recommends.
 * @param {Scenario} scenario
 * @param {number} days
 */
function leak (scenario, days) {
  const { changes, untilSeconds } = simulate({ startHour: 0, ...scenario }, { days })
  const confirmed = changes.find(({ diagnosis, state }) =>
    state === 'confirmed' && LEAKS.includes(diagnosis))
  const vpa = new VpaRecommender()
  const targets = live(scenario, Math.floor(untilSeconds / DAY), 1).map(day => {
    for (const { unixSeconds, ownBytes } of day) vpa.add(unixSeconds, ownBytes)
    return Math.round(vpa.recommendation.targetBytes / MIB)
  })
  return [
    scenario.name,
    confirmed ? `after ${(confirmed.seconds / 3600).toFixed(1)} h` : 'never',
    targets.map(target => `${target}`).join(', ')
  ]
}

function main () {
  const { values: given } = parseArgs({
    options: {
      only: { type: 'string', default: '' },
      days: { type: 'string', default: String(DAYS) },
      seeds: { type: 'string', default: '3' },
      write: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false }
    }
  })
  if (given.help) {
    console.log(`Usage: npm run bench:right-size -- [options]

  --only TEXT    services whose name contains it
  --days N       days that each service lives (default ${DAYS})
  --seeds N      lives of each service, with other random numbers (default 3)
  --write        also renew the tables of docs/right-size.md`)
    return
  }
  const seeds = Array.from({ length: Number(given.seeds) }, (_, i) => i + 1)
  /** @type {Record<string, Score[]>} */
  const sums = Object.fromEntries(Object.keys(METHODS).map(name => [name, []]))
  const rows = [['service', 'method', ...HEADS]]
  for (const scenario of SCENARIOS.filter(({ name }) => name.includes(given.only))) {
    const lives = seeds.map(seed => live(scenario, Number(given.days), seed))
    for (const [name, make] of Object.entries(METHODS)) {
      const score = add(lives.map(days => backtest(scenario, make, days)))
      sums[name].push(score)
      rows.push([scenario.name, name, ...cellsOf(score)])
    }
  }
  const total = [
    ['method', ...HEADS],
    ...Object.entries(sums).map(([name, scores]) => [name, ...cellsOf(add(scores))])
  ]
  const leaks = [
    ['service', 'right-size: refuses, because no size fixes a leak', "VPA's target after each day, MiB"],
    ...LEAKING.filter(({ name }) => name.includes(given.only)).map(scenario => leak(scenario, 7))
  ]
  const text = [total, rows, leaks].map(markdown).join('\n\n')
  console.log(text)
  if (!given.write) return
  const page = fs.readFileSync(PAGE, 'utf8')
  const marks = /(<!-- tables: npm run bench:right-size .*\n)[^]*(\n<!-- end of tables -->)/
  fs.writeFileSync(PAGE, page.replace(marks, (_, begin, end) => `${begin}\n${text}\n${end}`))
}

if (require.main === module) main()

module.exports = { backtest, live, METHODS, SCENARIOS }
