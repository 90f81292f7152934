'use strict'

const path = require('node:path')
const { spawnSync } = require('node:child_process')

const ROOT = path.join(__dirname, '../..')

/** Lines that use a function which an app may replace after the preload. */
const REACHING = [
  'setTimeout(() => {}, 1)',
  'setInterval(() => {}, 1)',
  'setImmediate(() => {})',
  'queueMicrotask(() => {})',
  'globalThis.setTimeout(() => {}, 1)',
  'global.clearTimeout(1)',
  'performance.now()',
  'performance.eventLoopUtilization()',
  'Date.now()',
  "new Date('2026-11-22')",
  "JSON.parse('{}')",
  'JSON.stringify({})',
  "fetch('http://127.0.0.1')",
  'Promise.resolve()',
  'process.nextTick(() => {})',
  'process.memoryUsage()',
  'process.memoryUsage.rss()',
  'process.cpuUsage()',
  'process.threadCpuUsage()',
  'process.resourceUsage()',
  'process.getActiveResourcesInfo()',
  'process._getActiveRequests()',
  'process.nextTick(() => {})',
  'process.hrtime()',
  "require('node:fs').readSync(1)",
  "require('fs').writeSync(1, '')",
  "require('node:fs/promises').readFile('')",
  "require('node:timers').setTimeout(() => {}, 1)",
  "require('timers/promises').setTimeout(1)",
  "require('node:perf_hooks').performance.now()",
  "require('node:v8').getHeapStatistics()"
]

/**
 * @param {string[]} lines
 * @param {string} file
 * @returns {string[]} message of the rule for each line, or ''
 */
function complaints (lines, file) {
  const { stdout } = spawnSync(
    'npx',
    ['--no-install', 'eslint', '--format', 'json', '--stdin', '--stdin-filename', file],
    {
      cwd: ROOT,
      input: lines.join('\n'),
      encoding: 'utf8'
    }
  )
  const [{ messages }] = JSON.parse(stdout)
  return lines.map(
    (_, i) =>
      messages.find(({ ruleId, line }) => line === i + 1 && ruleId?.startsWith('no-restricted-'))
        ?.message ?? ''
  )
}

it('the lint rule finds each use of a function that an app may replace', () => {
  const messages = complaints(REACHING, 'agent/collect/cpu.js')
  expect(REACHING.filter((_, i) => !messages[i].includes('agent/primordials.js'))).toEqual([])
})
