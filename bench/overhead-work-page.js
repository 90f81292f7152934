'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { median, quantileSorted } = require('simple-statistics')

/** Results of the last run with --write, from which the page can be written again without a run. */
const WORK_FILE = path.join(__dirname, 'overhead-work.json')
const TITLE = '## The same work'
const RESAMPLES = 2000

/**
 * Extra cost of one variant for the same work, in one round.
 * @typedef {object} Difference
 * @property {string} node version
 * @property {number} rate GCs in a second of work
 * @property {string} variant
 * @property {number} round
 * @property {number} share share of the CPU time without any tool
 * @property {number} microsPerGc
 */

/**
 * Median of differences, and the quartiles of that median by bootstrap percentiles (Efron 1979).
 * It is reproducible.
 * @param {number[]} values
 * @returns {{ middle: number, least: number, most: number }} quartiles
 */
function middleOf (values) {
  let seed = 1
  /** Park and Miller's minimal generator. */
  const random = () => (seed = seed * 48_271 % 2_147_483_647) / 2_147_483_647
  const medians = Array.from({ length: RESAMPLES }, () =>
    median(values.map(() => values[Math.floor(random() * values.length)]))
  ).sort((a, b) => a - b)
  const [least, most] = [0.25, 0.75].map(share => quantileSorted(medians, share))
  return { middle: median(values), least, most }
}

/**
 * @param {number} value
 * @param {number} digits
 */
const signed = (value, digits) => `${value > 0 ? '+' : ''}${value.toFixed(digits)}`

/**
 * @param {number[]} values
 * @param {number} digits
 */
const cell = (values, digits) => {
  if (values.length === 0) return '–'
  const { middle, least, most } = middleOf(values)
  return `${signed(middle, digits)} (${signed(least, digits)} … ${signed(most, digits)})`
}

/** @returns {Difference[]} */
const readWork = () =>
  fs.existsSync(WORK_FILE) ? JSON.parse(fs.readFileSync(WORK_FILE, 'utf8')) : []

/** @param {any[]} list */
const distinct = list => [...new Set(list)]

/**
 * @param {Difference[]} differences
 * @returns {string} Markdown; empty without measurements
 */
function workSection (differences) {
  if (differences.length === 0) return ''
  const parts = [
    TITLE,
    '`npm run bench:overhead-work -- --write` measures the CPU time of processes that do the ' +
    'same work, at several rates of GCs. Each figure is the median of all rounds. The brackets ' +
    'hold the quartiles of that median (bootstrap).',
    'Two processes that do the same work differ by one or two percent, and by more than ten at ' +
    '5,000 GCs a second. This noise hides small costs, so the first rows come from one process, ' +
    'in slices of 20 ms. The bench turns the GC hooks off and on again every 40 ms, and takes ' +
    'the ' +
      'mean of the differences without the highest and the lowest fifth. "Nothing, again" ' +
      'compares slices that both have no hooks, and shows the noise. The CPU clock measures each ' +
      'callback of the agent\'s timers: its frames, and a timer for the event-loop delay. It ' +
      'does not measure the work of the socket, nor the effect of the callbacks on the CPU ' +
      'caches. "memwatch" is the sum of hooks and callbacks.',
    '"memwatch, off and on" measures everything: hooks, timers and socket of the complete agent ' +
      'are off and on for 40 ms each, within one process. While it is off, its clock stands ' +
      'still, and its timers skip their callbacks. It starts no profiles. "Off, again" compares ' +
      'slices that are both without the agent. These rows are newer than the others: since then, ' +
      'the timer for the event-loop delay fires half as often in an app whose loop is not late. ' +
      'The cost depends on the machine: a section of its own has a slower one, on which the ' +
      'callbacks took twice as long, and the hooks alone +0.34 % at 1,000 GCs a second (two ' +
      'rounds). On the slowest machine, before that change, hooks and callbacks took +0.73 % at ' +
      '5,000 GCs a second.',
    'The other rows compare a process that has a tool with a process that has none, because ' +
      'objects that an observer leaves behind cost CPU time later. The processes alternate in ' +
      'slices of 20 ms. When these rows were measured, the process without a tool ran twice in a ' +
      'row at each turn, perhaps with warmer CPU caches: the rows may be some tenths of a ' +
      'percent too high, "nothing, again" included. The bench no longer does this. A second ' +
      '"nothing, again" shows the noise of such comparisons. Two rows ' +
      'measure memwatch in this way, too, without other tools beside it. The first one includes ' +
      'the profiles that the exporter starts by itself, because from 1,000 GCs a second on the ' +
      'app has a finding. The second one has `MEMWATCH_CAPTURES=off`, and so no profiles. The row ' +
      '"an empty observer" is the cost of every `PerformanceObserver` of GCs.'
  ]
  for (const node of distinct(differences.map(difference => difference.node))) {
    const here = withSums(differences.filter(difference => difference.node === node))
    const rates = distinct(here.map(({ rate }) => rate)).sort((a, b) => a - b)
    const rounds = rates.map(rate => {
      const of = here.filter(found => found.rate === rate)
      const counts = distinct(of.map(({ variant }) => variant)).map(variant =>
        of.filter(found => found.variant === variant).length)
      const [least, most] = [Math.min(...counts), Math.max(...counts)]
      return least === most ? `${least}` : `${least} to ${most}`
    })
    const measured = new Set(here.map(({ variant }) => variant))
    const shown = Object.keys(TITLES).filter(variant => measured.has(variant))
    const rows = shown.map(variant => {
      const ofRate = (/** @type {number} */ rate) =>
        here.filter(found => found.variant === variant && found.rate === rate)
      return [
        TITLES[/** @type {keyof typeof TITLES} */ (variant)],
        ...rates.map(rate => cell(ofRate(rate).map(({ share }) => 100 * share), 2)),
        cell(ofRate(rates[rates.length - 1]).map(({ microsPerGc }) => microsPerGc), 1)
      ]
    })
    parts.push(
      `### Node ${node}`,
      `Rounds: ${rounds.join(', ')}.`,
      [
        `| more CPU time, % | ${rates.map(rate => `${rate.toLocaleString('en')} GCs/s`).join(' | ')} | µs a GC |`,
        `|${' --- |'.repeat(rates.length + 2)}`,
        ...rows.map(row => `| ${row.join(' | ')} |`)
      ].join('\n')
    )
  }
  return parts.join('\n\n')
}

/** Lines of the table, in its order. */
const TITLES = Object.freeze({
  'none-again': 'nothing, again (one process)',
  hooks: 'GC hooks',
  callbacks: 'the agent\'s callbacks',
  sum: '**memwatch: hooks and callbacks**',
  'off-again': 'off, again (one process)',
  switched: '**memwatch, off and on (one process)**',
  none: 'nothing, again (two processes)',
  memwatch: 'memwatch (two processes)',
  'memwatch-no-captures': 'memwatch, captures off (two processes)',
  'memwatch-observer': 'memwatch without hooks',
  'empty-observer': 'an empty observer',
  'prom-client': 'prom-client',
  opentelemetry: 'OpenTelemetry',
  'dd-trace': 'dd-trace'
})

/**
 * @param {Difference[]} differences of one Node
 * @returns {Difference[]} with added sums: the hooks of each round plus the callbacks at this rate,
 *   which hardly differ between rounds
 */
const withSums = differences => [
  ...differences,
  ...differences.filter(({ variant }) => variant === 'hooks').flatMap(hooks => {
    const callbacks = differences.filter(({ variant, rate }) =>
      variant === 'callbacks' && rate === hooks.rate)
    if (callbacks.length === 0) return []
    return [{
      ...hooks,
      variant: 'sum',
      share: hooks.share + median(callbacks.map(({ share }) => share)),
      microsPerGc: hooks.microsPerGc + median(callbacks.map(({ microsPerGc }) => microsPerGc))
    }]
  })
]

/**
 * @param {string} page docs/overhead.md
 * @param {Difference[]} differences
 * @returns {string} the page with this section replaced, before those of the rounds
 */
function withWork (page, differences) {
  const rounds = page.indexOf('\n## Node ')
  if (rounds < 0) throw new Error('docs/overhead.md has no rounds')
  const at = page.indexOf(`\n${TITLE}\n`)
  const before = page.slice(0, at < 0 ? rounds : at)
  return `${before}\n${workSection(differences)}\n${page.slice(rounds)}`
}

module.exports = { WORK_FILE, middleOf, readWork, withWork, workSection }
