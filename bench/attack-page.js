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
 * docs/attack.md: attacks and their results.
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
        'exporter as the chart does, and plays an attacker for each row of the table of trust ' +
          `in [SECURITY.md](../SECURITY.md). ${held.length} of ${attacked.length} attacks ` +
            'changed nothing that they must not change. Meanwhile a well-behaved app was ' +
              'watched, and the probes of the chart were asked once a second.',
      table(
        [
          'exporter',
          'memory limit, MiB',
          'highest RSS, MiB',
          'longest wait of a probe, s',
          'failed probes',
          'lost frames of the well-behaved agent'
        ],
        [...summaryOf(rows, 'sidecar'), ...summaryOf(rows, 'node')]
      ),
      `Exporters ran on Node.js ${node}, apps on ${own}. A machine with two cores ran both, and ` +
        'the attackers.',
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
      'RSS is VmHWM of the exporter; its cgroup also counts page cache. Lost frames of the ' +
      'well-behaved agent are gaps in its sequence, and frames that it dropped. Another address ' +
      'scrapes `/metrics` every five seconds.',
      table(
        [
          'attack',
          'exporter',
          'seconds',
          'RSS, MiB',
          'cgroup, MiB',
          'longest probe, s',
          'failed probes',
          'longest scrape, s',
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
            '## An impostor in the exporter’s place',
            table(
              [
                'it sends',
                'answered',
                'p50, ms',
                'p99, ms',
                'CPU of the app, s',
                'the app ends in, ms'
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
      'Under each attack on an exporter: it does not end, no process of its cgroup is killed ' +
        'for memory, no probe fails, no frame of the well-behaved agent is lost. And:',
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
