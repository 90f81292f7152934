'use strict'

const path = require('node:path')
const { Linter } = require('eslint')
const config = require('../../eslint.config')

const ROOT = path.join(__dirname, '../..')

/** Lines that reach for a function which an app may replace after the preload. */
const REACHING = [
  'setTimeout(() => {}, 1)', 'setInterval(() => {}, 1)', 'setImmediate(() => {})', 'queueMicrotask(() => {})',
  'globalThis.setTimeout(() => {}, 1)', 'global.clearTimeout(1)',
  'performance.now()', 'performance.eventLoopUtilization()', 'Date.now()', "new Date('2026-11-22')",
  "JSON.parse('{}')", 'JSON.stringify({})', "fetch('http://127.0.0.1')", 'Promise.resolve()',
  'process.nextTick(() => {})', 'process.memoryUsage()', 'process.memoryUsage.rss()', 'process.cpuUsage()',
  'process.threadCpuUsage()', 'process.getActiveResourcesInfo()', 'process.hrtime()',
  "require('node:fs').readSync(1)", "require('fs').writeSync(1, '')", "require('node:fs/promises').readFile('')",
  "require('node:timers').setTimeout(() => {}, 1)", "require('timers/promises').setTimeout(1)",
  "require('node:perf_hooks').performance.now()", "require('node:v8').getHeapStatistics()"
]

const linter = new Linter({ configType: 'flat', cwd: ROOT })

/** @param {string} line @param {string} file @returns {string[]} messages of the rule */
const complaints = (line, file) => linter.verify(`'use strict'\n\n${line}\n`, config, { filename: path.join(ROOT, file) })
  .filter(({ ruleId }) => ruleId?.startsWith('no-restricted-')).map(({ message }) => message)

describe('the lint rule of the agent', () => {
  it.each(REACHING)('refuses %s', line => {
    expect(complaints(line, 'agent/collect/cpu.js')).toEqual([expect.stringContaining('agent/primordials.js')])
  })

  it('leaves captured functions and other folders alone', () => {
    expect(complaints("require('./primordials').setTimeout(() => {}, 1)", 'agent/agent.js')).toEqual([])
    expect(complaints('setTimeout(() => {}, 1)', 'exporter/exporter.js')).toEqual([])
  })
})
