'use strict'

const { median } = require('simple-statistics')

/**
 * Largest allowed cost of the agent, in the unit of the column.
 * @type {{ column: string, title: string, apps: string[], most: number, scale: number }[]}
 */
const TARGETS = [
  {
    column: 'throughput',
    title: 'throughput lost, %',
    apps: ['api', 'allocating'],
    most: 0.5,
    scale: -1
  },
  { column: 'rss', title: 'RSS added, MiB', apps: ['idle', 'api'], most: 2, scale: 2 ** -20 },
  {
    column: 'anon',
    title: 'anonymous memory added, MiB',
    apps: ['idle', 'api'],
    most: 2,
    scale: 2 ** -20
  },
  { column: 'start', title: 'later start, ms', apps: ['api', 'allocating'], most: 5, scale: 1 },
  {
    column: 'idleCpu',
    title: 'CPU of an idle app, % of a core',
    apps: ['idle'],
    most: 0.1,
    scale: 1
  },
  {
    column: 'loops',
    title: 'turns of an idle loop a second (one wake-up has two turns)',
    apps: ['idle'],
    most: 4,
    scale: 1
  }
]

/**
 * Targets, with the lowest and highest measured median of all Nodes and apps. A cost above its
 * target, but within the noise of two runs without any tool, is neither met nor missed.
 * @param {any[]} runs see overhead.js
 * @param {import('./overhead-page').Column[]} columns
 * @returns {string[][]} rows of a table
 */
function againstTargets (runs, columns) {
  return TARGETS.flatMap(({ column, title, apps, most, scale }) => {
    const { of } = /** @type {import('./overhead-page').Column} */ (columns.find(({ key }) => key === column))
    const mediansOf = (/** @type {string} */ variant) => apps.flatMap(app => [...new Set(runs.map(run => run.node))].flatMap(node => {
      const here = runs.filter(run => run.node === node && run.app === app)
      const differences = here.filter(run => run.variant === variant)
        .map(run => of(run, here.find(base => base.variant === 'none' && base.round === run.round)))
        .filter(value => value !== null && Number.isFinite(value))
      return differences.length === 0 ? [] : [scale * median(/** @type {number[]} */ (differences))]
    })).sort((a, b) => a - b)
    const costs = mediansOf('memwatch')
    const again = mediansOf('none-again')
    if (costs.length === 0) return []
    const digits = most < 0.5 ? 3 : 1
    const range = (/** @type {number[]} */ values) => values.length === 0 ? '–' : `${values[0].toFixed(digits)} … ${values[values.length - 1].toFixed(digits)}`
    const worst = costs[costs.length - 1]
    const noise = Math.max(...again.map(Math.abs), 0)
    return [
      [
        title,
        String(most),
        range(costs),
        range(again),
        worst <= most
          ? 'met'
          : worst <= noise
            ? 'less than the noise'
            : `missed in ${costs.filter(cost => cost > most).length} of ${costs.length}`
      ]
    ]
  })
}

module.exports = { againstTargets }
