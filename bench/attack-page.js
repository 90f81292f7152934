'use strict'

/** @typedef {import('./attack').Row} Row */

const MIB = 2 ** 20
const mib = (/** @type {number} */ bytes) => (bytes > 0 ? (bytes / MIB).toFixed(0) : '–')
const seconds = (/** @type {number} */ ms) => (ms / 1000).toFixed(2)
/** @param {string} text text for a cell of a table */
const cell = text => text.replace(/[|\\`<>]/g, '\\$&').replace(/\s+/g, ' ')
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

/** @param {Row[]} rows */
const measuredOf = rows => rows.flatMap(({ measured }) => (measured ? [measured] : []))
/**
 * @param {Row[]} rows
 * @param {'sidecar' | 'node'} mode
 */
function summaryOf (rows, mode) {
  const measured = measuredOf(rows.filter(row => row.mode === mode && row.who !== 'nobody'))
  if (measured.length === 0) return []
  const failed = measured.reduce((sum, { probes }) => sum + probes.failures.length, 0)
  const asked = measured.reduce((sum, { probes }) => sum + probes.asked, 0)
  const lost = measured.reduce((sum, { goodLost }) => sum + (goodLost || 0), 0)
  const frames = measured.reduce((sum, { goodFrames }) => sum + goodFrames, 0)
  return [
    [
      mode,
      mib(measured[0].memoryBytes),
      mib(Math.max(...measured.map(({ rssPeakBytes }) => rssPeakBytes))),
      seconds(Math.max(...measured.map(({ probes }) => probes.longestMs))),
      `${failed} of ${asked}`,
      `${lost} of ${frames}`
    ]
  ]
}

/**
 * Builds docs/attack.md: attacks and their results.
 * @param {Row[]} rows
 * @param {{ node: string, own: string, trust: Record<string, string> }} of versions of Node.js,
 *   rows of SECURITY.md's table
 * @returns {string}
 */
function attackPage (rows, { node, own, trust }) {
  const attacked = rows.filter(({ who }) => who !== 'nobody')
  const held = attacked.filter(({ broke }) => broke.length === 0)
  const exporters = rows.filter(({ measured }) => measured)
  const turns = rows.flatMap(({ turns = [] }) => turns)
  return (
    [
      '# Attacks',
      '<!-- Written by npm run bench:attack -- --write; do not edit. -->\nThe bench starts an ' +
        'exporter with the settings of the Helm chart, and attacks it as each client in the trust ' +
        `table of [SECURITY.md](../SECURITY.md). ${held.length} of ${attacked.length} attacks ` +
        'failed. During each attack the exporter also watched a normal app, and the probes of the ' +
        'chart ran once a second.',
      table(
        [
          'exporter',
          'memory limit, MiB',
          'highest RSS, MiB',
          'slowest probe, s',
          'failed probes',
          'lost frames of the normal app'
        ],
        [...summaryOf(rows, 'sidecar'), ...summaryOf(rows, 'node')]
      ),
      `Exporters ran on Node.js ${node}, apps on ${own}. One machine with two cores ran ` +
      'exporters, apps and attackers.',
      '## The attacks',
      table(
        ['attacker', 'attack', 'exporter', 'tried', 'result'],
        attacked.map(({ who, what, mode, tried, broke }) => [
          cell(trust[who]),
          cell(what),
          mode ?? '–',
          cell(tried),
          broke.length === 0 ? 'held' : `**broke**: ${cell(broke.join('; '))}`
        ])
      ),
      '## Measurements',
      'RSS is VmHWM of the exporter; the cgroup also counts page cache. A frame of the normal ' +
      'app is lost if it leaves a gap in the sequence, or if the agent drops it. A client at ' +
      'another address scrapes `/metrics` every five seconds.',
      table(
        [
          'attack',
          'exporter',
          'seconds',
          'RSS, MiB',
          'cgroup, MiB',
          'slowest probe, s',
          'failed probes',
          'slowest scrape, s',
          'failed scrapes',
          'frames',
          'lost'
        ],
        exporters.map(({ what, mode, tookSeconds, measured }) => {
          const { rssPeakBytes, groupPeakBytes, probes, scrapes, goodFrames, goodLost } =
            /** @type {NonNullable<Row['measured']>} */ (measured)
          return [
            cell(what),
            mode ?? '',
            tookSeconds.toFixed(0),
            mib(rssPeakBytes),
            mib(groupPeakBytes),
            seconds(probes.longestMs),
            `${probes.failures.length} of ${probes.asked}`,
            seconds(scrapes.longestMs),
            `${scrapes.failures.length} of ${scrapes.asked}`,
            goodFrames,
            Number.isNaN(goodLost) ? '–' : goodLost
          ]
        })
      ),
      ...(turns.length === 0
        ? []
        : [
            '## An impostor instead of the exporter',
            table(
              [
                'impostor',
                'answered',
                'p50, ms',
                'p99, ms',
                'CPU of the app, s',
                'exit of the app, ms'
              ],
              turns.map(({ behaviour, asked, served, p50Ms, p99Ms, cpuSeconds, endMs }) => [
                behaviour,
                `${served} of ${asked}`,
                p50Ms.toFixed(1),
                p99Ms.toFixed(0),
                cpuSeconds.toFixed(2),
                endMs.toFixed(0)
              ])
            )
          ]),
      '## Requirements',
      'During each attack the exporter keeps running, the kernel kills no process of its cgroup, ' +
      'no probe fails, and no frame of the normal app is lost. Further requirements:',
      table(
        ['attack', 'exporter', 'claim', 'held'],
        rows.flatMap(({ what, mode, claims }) =>
          claims.map(({ text, held, detail }) => [
            cell(what),
            mode ?? '–',
            cell(text),
            held ? 'yes' : `**no**: ${cell(detail)}`
          ])
        )
      )
    ].join('\n\n') + '\n'
  )
}

module.exports = { attackPage }
