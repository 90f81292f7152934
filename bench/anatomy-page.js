'use strict'

const { median } = require('simple-statistics')

/** Interval of scans, and their largest shares of a core: see agent/collect/memory-map.js. */
const EVERY_SECONDS = 10
const MOST_SHARE = 0.0005
const EARLY_SHARE = 0.002

/** @param {number} bytes */
const mb = bytes => (bytes / 2 ** 20).toFixed(0)
/** @param {number} ratio */
const percent = ratio => `${(100 * ratio).toFixed(0)} %`
/** @param {number} seconds */
const ms = seconds => (1000 * seconds).toFixed(2)
/**
 * @param {number} seconds that a reading takes
 * @returns {number} share of a core
 */
const share = seconds => seconds / Math.max(EVERY_SECONDS, seconds / MOST_SHARE)
/**
 * Error of a prediction relative to the measured result; a tolerance in bytes covers cases that
 * return next to nothing.
 * @param {{ gained: number, rss: number }} trim
 * @param {number} predicted
 */
const off = ({ gained, rss }, predicted) => Math.abs(gained) < 0.05 * rss
  ? `${mb(predicted - gained)} MiB`
  : `${predicted >= gained ? '+' : '−'}${percent(Math.abs(predicted / gained - 1))}`

/**
 * @param {string[]} head
 * @param {(string | number)[][]} rows
 */
const table = (head, rows) =>
  [
    `| ${head.join(' | ')} |`,
    `|${head.map(() => ' --- ').join('|')}|`,
    ...rows.map(row => `| ${row.join(' | ')} |`)
  ].join('\n')

/**
 * Builds docs/anatomy.md from the results of npm run bench:anatomy.
 * @param {{ trims: any[], unexplained: any[], costs: any[] }} found
 * @returns {string}
 */
function anatomyPage ({ trims, unexplained, costs }) {
  const sections = [
    '# How accurate the RSS breakdown is',
    '<!-- Written by npm run bench:anatomy -- --write; do not edit. -->'
  ]
  const done = trims
    .filter(({ refused }) => !refused)
    .sort((a, b) =>
      `${a.allocator}${a.app}${a.node}`.localeCompare(`${b.allocator}${b.app}${b.node}`)
    )
  if (done.length > 0) {
    const telling = done.filter(({ gained, rss }) => gained >= 0.05 * rss)
    const within = (/** @type {'asked' | 'estimated'} */ key, /** @type {number} */ limit) => telling.filter(trim => Math.abs(trim[key] / trim.gained - 1) <= limit).length
    sections.push(
      '## Memory that malloc_trim returns, predicted and measured',
      'Fragmenting lab apps ran in their memory cgroup; then `memwatch trim` predicted the ' +
        "returned memory, and returned it. *Asked* is the prediction from malloc's own " +
        'statistics (`MEMWATCH_ALLOCATOR_ACCESS`). *Estimated* is the prediction from /proc ' +
        'alone, at the same moment. All values are in MiB.',
      table(
        [
          'malloc',
          'app',
          'Node',
          'RSS',
          'returned',
          'asked',
          'error',
          'estimated',
          'error',
          'blocked, ms'
        ],
        done.map(trim => [
          trim.allocator,
          trim.app,
          trim.node,
          mb(trim.rss),
          mb(trim.gained),
          mb(trim.asked),
          off(trim, trim.asked),
          mb(trim.estimated),
          off(trim, trim.estimated),
          ms(trim.blockedSeconds)
        ])
      ),
      `In ${telling.length} runs the trim returned 5 % of RSS or more: the value *asked* was ` +
        `within 10 % in ${within('asked', 0.1)} of them, and the value *estimated* within 25 % ` +
        `in ${within('estimated', 0.25)}. A trim blocked the app for ` +
        `${ms(median(done.map(({ blockedSeconds }) => blockedSeconds)))} ms (median), and for ` +
        `${ms(Math.max(...done.map(({ blockedSeconds }) => blockedSeconds)))} ms at most.`
    )
  }
  if (unexplained.length > 0) {
    const sorted = [...unexplained].sort((a, b) => b.unexplainedRatio - a.unexplainedRatio)
    sections.push(
      '## Unexplained memory',
      'The parts added up to RSS in ' +
        `${unexplained.filter(({ sumIsRss }) => sumIsRss).length} of ${unexplained.length} runs ` +
        'of lab apps. More than 10 % of RSS was unexplained in ' +
        `${sorted.filter(({ unexplainedRatio }) => unexplainedRatio > 0.1).length} of them. The ` +
        'table shows the runs with the most unexplained memory.',
      table(
        ['Node', 'app', 'RSS, MiB', 'unexplained'],
        sorted
          .slice(0, 8)
          .map(({ node, app, rss, unexplainedRatio }) => [
            node,
            app,
            mb(rss),
            `${(100 * unexplainedRatio).toFixed(1)} %`
          ])
      )
    )
  }
  if (costs.length > 0) {
    sections.push(
      '## Cost of a scan for the app',
      "Main-thread time of one scan of the memory map, and of reading malloc's statistics; " +
        'medians of 21. A scan runs in slices of 0.4 ms, and the app runs between them. On ' +
        `request, and in this bench, the scan runs in one piece. It runs every ${EVERY_SECONDS} ` +
        `s, or less often to stay below ${100 * MOST_SHARE} % of a core, and below ` +
        `${100 * EARLY_SHARE} % in the first two minutes of a process.`,
      table(
        [
          'Node',
          'RSS, MiB',
          'Buffers, MiB',
          'heap, MiB',
          'scan, ms',
          'longest, ms',
          'of a core',
          'malloc\'s statistics, ms'
        ],
        costs.map(
          ({ node, rss, buffersMb, heapMb, lookSeconds, longestLookSeconds, booksSeconds }) => [
            node,
            mb(rss),
            buffersMb,
            heapMb,
            ms(lookSeconds),
            ms(longestLookSeconds),
            `${(100 * share(lookSeconds)).toFixed(3)} %`,
            booksSeconds === null ? '–' : ms(booksSeconds)
          ]
        )
      )
    )
  }
  return sections.join('\n\n') + '\n'
}

module.exports = { anatomyPage }
