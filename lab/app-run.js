'use strict'

const path = require('node:path')
const { PerformanceObserver } = require('node:perf_hooks')
const v8 = require('node:v8')
const { parseArgs } = require('node:util')

/**
 * Arguments of one lab app, and its functions to report.
 * @typedef {object} AppRun
 * @property {number} rate `--rate N`: multiplies the app's load, 1 by default
 * @property {boolean} fixed `--fixed`: true to run the app without the defect in its code
 * @property {(work?: number) => void} served counts finished work: a request, a file, a batch row
 * @property {(release: () => void) => void} onEnd called once before the process ends
 */

const PROGRESS_MS = 5000
const MB = 2 ** 20
const OPTIONS = /** @type {const} */ ({
  seconds: { type: 'string' },
  rate: { type: 'string' },
  fixed: { type: 'boolean', default: false }
})

/**
 * Manages the lifecycle of a lab app. It prints a progress line every 5 s. The app ends after
 * `--seconds N`, and cleanly (exit code 0) after SIGTERM and SIGINT. The last line on stdout is a
 * JSON summary.
 * @param {object} [options]
 * @param {string} [options.work] unit that `served` counts, in the plural
 * @param {() => Record<string, number>} [options.figures] the app's own figures for progress and
 *   summary
 * @returns {AppRun}
 */
function appRun ({ work = 'requests', figures = () => ({}) } = {}) {
  const { values } = parseArgs({ options: OPTIONS })
  const seconds = values.seconds === undefined ? undefined : positive('--seconds', values.seconds)
  const rate = values.rate === undefined ? 1 : positive('--rate', values.rate)
  const app = path.basename(process.argv[1], '.js')
  /** @type {Array<() => void>} */
  const releases = []
  let done = 0
  let last = { done: 0, cpu: process.cpuUsage(), seconds: process.uptime() }
  let ended = false
  const gcs = countGcs()
  /** @type {number[]} RSS once per second, including the warm-up */
  const rssBytes = []

  function progress () {
    const now = { done, cpu: process.cpuUsage(), seconds: process.uptime() }
    const elapsed = now.seconds - last.seconds
    const cpuSeconds = cpuSecondsOf(now.cpu) - cpuSecondsOf(last.cpu)
    const worked = now.done - last.done
    console.log(
      `${now.seconds.toFixed(0)} s: ${done} ${work}, ${(worked / elapsed).toFixed(0)}/s, ` +
        `${worked ? ((cpuSeconds / worked) * 1000).toFixed(2) : '–'} ms CPU each, CPU ` +
          `${((cpuSeconds / elapsed) * 100).toFixed(0)} %, ${memoryText()}` +
            Object.entries(figures()).map(([name, value]) => `, ${name} ${value}`).join('')
    )
    last = now
  }

  function end () {
    if (ended) return
    ended = true
    for (const release of releases) release()
    console.log(
      JSON.stringify({
        lab: 'summary',
        app,
        [work]: done,
        seconds: round(process.uptime()),
        cpuSeconds: round(cpuSecondsOf(process.cpuUsage())),
        maxRssBytes: process.resourceUsage().maxRSS * 1024,
        medianRssBytes: middleOf(rssBytes) ?? readRss()[0],
        ...gcs.take(),
        ...figures()
      })
    )
    process.exit(0)
  }

  setInterval(progress, PROGRESS_MS)
  setInterval(() => rssBytes.push(...readRss()), 1000)
  if (seconds !== undefined) setTimeout(end, seconds * 1000)
  process.on('SIGTERM', end)
  process.on('SIGINT', end)

  return {
    rate,
    fixed: values.fixed,
    served: (work = 1) => { done += work },
    onEnd: (release) => { releases.push(release) }
  }
}

function memoryText () {
  const rss = readRss().map(bytes => `RSS ${(bytes / MB).toFixed(0)} MB, `)
  return `${rss}heap used ${(v8.getHeapStatistics().used_heap_size / MB).toFixed(0)} MB`
}

/**
 * @returns {number[]} list with the RSS in bytes; empty without /proc, from which Node.js reads it
 */
function readRss () {
  try {
    return [process.memoryUsage.rss()]
  } catch {
    return []
  }
}

/** @param {number[]} values */
const middleOf = values => values.sort((a, b) => a - b)[values.length >> 1]

/**
 * The app's own count of GC pauses, without the agent: a reference for memwatch's counts.
 * @returns {{ take: () => { scavenges: number, majors: number, gcPauseSeconds: number } }}
 */
function countGcs () {
  const counts = { scavenges: 0, majors: 0, gcPauseSeconds: 0 }
  /** @param {import('node:perf_hooks').PerformanceEntry[]} entries */
  const add = (entries) => {
    for (const entry of entries) {
      const { kind } = /** @type {{ detail: { kind: number } }} */ (/** @type {unknown} */ (entry)).detail
      if (kind === 1) counts.scavenges++
      if (kind === 4) counts.majors++
      counts.gcPauseSeconds += entry.duration / 1000
    }
  }
  const observer = new PerformanceObserver((list) => add(list.getEntries()))
  observer.observe({ entryTypes: ['gc'] })
  return {
    take: () => {
      add(observer.takeRecords())
      return { ...counts, gcPauseSeconds: round(counts.gcPauseSeconds) }
    }
  }
}

/**
 * @param {string} name
 * @param {string} text
 */
function positive (name, text) {
  const value = Number(text)
  if (value > 0 && Number.isFinite(value)) return value
  console.error(`${name} must be a number above 0, not ${text}`)
  process.exit(2)
}

/** @param {NodeJS.CpuUsage} usage CPU time in microseconds */
function cpuSecondsOf ({ user, system }) {
  return (user + system) / 1e6
}

/** @param {number} value */
function round (value) {
  return Math.round(value * 1000) / 1000
}

module.exports = { appRun }
