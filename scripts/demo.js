'use strict'

/**
 * `npm run demo`: a real app starves for new space; memwatch finds it and says what to set; the app runs again with that,
 * and both runs are put side by side. About a minute and a half.
 */

const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { ROOT } = require('./generate')
const { formatValue } = require('../exporter/text/format')

const APP = 'semi-space-starvation'
const SECONDS = 40

/**
 * @param {string[]} options of memwatch simulate
 * @returns {{ report: import('../exporter/cli/watch-command').Report, summary: Record<string, number> }}
 */
function simulate (options) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-demo-'))
  const file = path.join(folder, 'report.json')
  const { status, stdout } = spawnSync(process.execPath,
    [path.join(ROOT, 'exporter/cli/memwatch.js'), 'simulate', APP, '--for', String(SECONDS), '--report', file, ...options],
    { stdio: ['ignore', 'pipe', 'inherit'], encoding: 'utf8', maxBuffer: 64 * 2 ** 20 })
  process.stdout.write(stdout)
  if (status !== 0) throw new Error(`memwatch simulate ended with status ${status}`)
  const report = JSON.parse(fs.readFileSync(file, 'utf8'))
  fs.rmSync(folder, { recursive: true, force: true })
  const summary = stdout.split('\n').find(line => line.startsWith('{"lab":"summary"'))
  if (!summary) throw new Error('the app printed no summary')
  return { report, summary: JSON.parse(summary) }
}

/**
 * What one run cost, per request where that says more.
 * @param {ReturnType<typeof simulate>} run
 */
function figures ({ report, summary }) {
  const main = report.targets.find(target => target.thread === 'main')
  return {
    'primary verdict': main?.primary?.diagnosis ?? 'none',
    'CPU per request': `${(summary.cpuSeconds / summary.requests * 1000).toFixed(2)} ms`,
    'GC pauses, share of wall time': `${(summary.gcPauseSeconds / summary.seconds * 100).toFixed(1)} %`,
    'scavenges a second': (summary.scavenges / summary.seconds).toFixed(1),
    'major GCs a second': (summary.majors / summary.seconds).toFixed(1),
    'peak RSS': formatValue(summary.maxRssBytes, 'bytes')
  }
}

function main () {
  console.log(`1 of 2: the app as it is, ${SECONDS} s\n`)
  const before = simulate([])
  const primary = before.report.targets.find(target => target.thread === 'main')?.primary
  if (!primary) throw new Error('nothing was confirmed: is this machine too busy, or was there no memory group?')
  const flag = primary.fix[0].change.flag
  if (!flag) throw new Error(`the fix of ${primary.diagnosis} is no flag`)
  console.log(`\n2 of 2: the same app with ${flag}, ${SECONDS} s\n`)
  const after = simulate([`--node-option=${flag}`])

  const left = figures(before)
  const right = figures(after)
  const rows = Object.keys(left).map(name => [name, left[/** @type {keyof typeof left} */ (name)], right[/** @type {keyof typeof left} */ (name)]])
  console.log()
  for (const [name, was, is] of [['', 'before', flag], ...rows]) console.log(`  ${name.padEnd(32)}${was.padEnd(26)}${is}`)
  for (const { signal, from, to, unit } of primary.fix[0].predicted) {
    console.log(`  predicted ${signal}: ${formatValue(from, unit)} → ${formatValue(to, unit)}`)
  }
}

main()
