'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { gunzipSync } = require('node:zlib')
const { createMetrics } = require('../../exporter/expose/metrics')
const { evaluate } = require('../../engine/verdicts/evaluate')
const { exporterState } = require('../support/exporter-state')
const { openSession } = require('../support/open-session')
const { Deaths } = require('../../exporter/deaths/deaths')
const { Targets } = require('../../engine/history/targets')

/** Largest number of series of a process without worker threads, including prom-client's names. */
const MOST_SERIES = 250
const RECORDINGS = path.join(__dirname, '../recordings')

/**
 * @param {string} file
 * @returns {Promise<Record<string, number>>} series of its main thread at the end, by metric
 */
async function seriesOf (file) {
  const lines = gunzipSync(fs.readFileSync(path.join(RECORDINGS, file)))
    .toString()
    .trim()
    .split('\n')
    .map(text => JSON.parse(text).line)
    .filter(Boolean)
  const targets = new Targets({ now: Date.now })
  targets.on('frame', target => evaluate(target))
  const session = openSession(
    targets,
    lines.find(({ type, threadId }) => type === 'hello' && threadId === 0)
  )
  for (const line of lines) if (line.type === 'frame') session.frame(line)
  const state = exporterState({ exits: new Deaths().exits(targets.all) })
  const { parts } = await createMetrics({
    targets: () => targets.all,
    state: () => state,
    compat: true
  }).text()
  /** @type {Record<string, number>} */
  const series = {}
  for (const line of Buffer.concat(parts).toString().split('\n')) {
    if (!line.includes('target=')) continue
    const name = line.slice(0, line.indexOf('{'))
    series[name] = (series[name] ?? 0) + 1
  }
  return series
}

it.each(fs.readdirSync(RECORDINGS).filter(name => name.endsWith('.gz')))(
  `%s: at most ${MOST_SERIES} series`,
  async file => {
    const series = await seriesOf(file)
    const count = Object.values(series).reduce((sum, n) => sum + n, 0)
    // A failure then shows the superfluous series.
    expect(count > MOST_SERIES ? series : 'few enough').toBe('few enough')
    expect(count).toBeGreaterThan(100)
  }
)
