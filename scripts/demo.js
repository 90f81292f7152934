'use strict'

/**
 * `npm run demo`: runs a real app whose new space is too small, until memwatch prints the flag that
 * fixes it. Then it runs the app with the flag, and compares both runs. It takes about a minute and
 * a half.
 */

const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { ROOT } = require('./generate')
const { findCase } = require('../engine/verdicts/case')
const { primaryOf } = require('../engine/verdicts/urgency')
const { compare } = require('../cli/comparison/compare')
const { measure } = require('../cli/comparison/measure')
const { renderComparison } = require('../cli/comparison/render')
const { terminalText } = require('../cli/text/terminal')

const APP = 'semi-space-starvation'
const SECONDS = 40
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-demo-'))

/**
 * @param {string} name of the recording
 * @param {string[]} options of memwatch simulate
 * @returns {Promise<import('../cli/comparison/measure').Run>}
 */
async function simulate (name, options) {
  const file = path.join(folder, `${name}.ndjson.gz`)
  const { status, stdout } = spawnSync(
    process.execPath,
    [
      path.join(ROOT, 'cli/memwatch.js'),
      'simulate',
      APP,
      '--for',
      String(SECONDS),
      '--record',
      file,
      ...options
    ],
    { stdio: ['ignore', 'pipe', 'inherit'], encoding: 'utf8', maxBuffer: 64 * 2 ** 20 }
  )
  process.stdout.write(stdout)
  if (status !== 0) throw new Error(`memwatch simulate ended with status ${status}`)
  const summary = stdout.split('\n').find(line => line.startsWith('{"lab":"summary"'))
  if (!summary) throw new Error('the app printed no summary')
  return measure(file, { work: { requests: JSON.parse(summary).requests } })
}

async function main () {
  console.log(`1 of 2: the app as it is, ${SECONDS} s\n`)
  const before = await simulate('before', [])
  const primary = before.target && primaryOf(findCase(before.target).verdicts)
  if (!primary) {
    throw new Error(
      'nothing was confirmed: is this machine too busy, or was there no memory cgroup?'
    )
  }
  const [fix] = primary.fix
  if (!fix.change.flag) throw new Error(`the fix of ${primary.diagnosis} is no flag`)
  console.log(`\n2 of 2: the same app with ${fix.change.flag}, ${SECONDS} s\n`)
  const after = await simulate('after', [`--node-option=${fix.change.flag}`])
  console.log(
    terminalText(
      ['', ...renderComparison(compare([before], [after], { diagnosis: primary.diagnosis, fix }))],
      { colour: process.stdout.isTTY }
    )
  )
}

main().finally(() => fs.rmSync(folder, { recursive: true, force: true }))
