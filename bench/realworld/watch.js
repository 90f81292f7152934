'use strict'

/**
 * Runs one program as `memwatch run` does, in a memory cgroup, and prints its findings with their
 * times as JSON: the report has the end only. A process of its own for each run, as an exporter is.
 *
 *   node watch.js JOB    JOB: a Job as JSON
 */

const { spawn } = require('node:child_process')
const { watchCommand } = require('../../cli/watch-command')
const { findCase } = require('../../engine/verdicts/case')
const { summarize } = require('../../engine/verdicts/headline')
const { createMemoryGroup } = require('../../exporter/process/memory-group')
const { freePort } = require('../../test/support/free-port')

/**
 * Time that a run continues after its problem is confirmed; it ends at once when suspects are
 * there, too.
 */
const AFTER_CONFIRMED_SECONDS = 40
const MB = 2 ** 20

/**
 * @typedef {object} Job
 * @property {string[]} command
 * @property {string[] | null} traffic command of its clients
 * @property {Record<string, string>} env
 * @property {number | null} limitMib
 * @property {number} seconds
 * @property {string[]} until diagnoses: once one of them is confirmed, enough was seen
 *
 * @typedef {object} Change of a verdict
 * @property {number} seconds uptime of the isolate
 * @property {number} pid
 * @property {string} thread
 * @property {string} diagnosis
 * @property {string} state
 * @property {string} severity
 * @property {boolean} opportunity
 * @property {string} summary
 *
 * @typedef {{ seconds: number, pid: number, thread: string, state: string, diagnosis: string | null
 *   }} HeadlineChange
 *
 * @typedef {object} Watched
 * @property {import('../../cli/watch-command').Report} report
 * @property {Change[]} changes
 * @property {HeadlineChange[]} headlines
 * @property {{ seconds: number, kind: string }[]} captures
 * @property {string | null} unlimited why there is no memory group
 */

/** @param {Job} job */
async function main ({ command, traffic, env, limitMib, seconds, until }) {
  const group =
    limitMib === null
      ? undefined
      : createMemoryGroup({ limitBytes: limitMib * MB, name: 'realworld' })
  const [file, ...args] = command
  const wrapped = group?.wrap(file, args) ?? { command: file, args }
  const port = String(await freePort())
  const clients = traffic && spawn(traffic[0], traffic.slice(1), {
    env: { ...process.env, ...env, PORT: port },
    stdio: 'ignore'
  })
  /** @type {Omit<Watched, 'report' | 'unlimited'>} */
  const seen = { changes: [], headlines: [], captures: [] }
  const enough = new AbortController()
  try {
    const { report } = await watchCommand({
      command: [wrapped.command, ...wrapped.args],
      shown: command,
      forSeconds: seconds,
      stdout: 2,
      env: { ...process.env, ...env, PORT: port },
      abort: enough.signal,
      onStart: exporter => note(exporter, seen, until, () => enough.abort())
    })
    const unlimited = group && !group.supported ? (group.reason ?? '') : null
    process.stdout.write(JSON.stringify({ report, ...seen, unlimited }))
  } finally {
    clients?.kill('SIGKILL')
    await group?.remove()
  }
}

/**
 * @param {import('../../exporter/exporter').Exporter} exporter
 * @param {Omit<Watched, 'report' | 'unlimited'>} seen
 * @param {string[]} until
 * @param {() => void} end
 */
function note (exporter, seen, until, end) {
  const uptimeSeconds = (/** @type {import('../../engine/history/target').Target} */ target) =>
    target.frame?.uptimeSeconds ?? 0
  /** @type {Map<object, string>} */
  const headlines = new Map()
  exporter.on('verdict', (target, { diagnosis, state, severity, opportunity, summary }) => {
    const { hello: { pid }, thread } = target
    const seconds = uptimeSeconds(target)
    seen.changes.push({
      seconds, pid, thread, diagnosis, state, severity, opportunity, summary
    })
    if (state === 'confirmed' && until.includes(diagnosis)) {
      setTimeout(end, AFTER_CONFIRMED_SECONDS * 1000).unref()
    }
  })
  exporter.on('captured', (capture, target) => {
    seen.captures.push({ seconds: uptimeSeconds(target), kind: capture.kind })
  })
  exporter.on('frame', target => {
    const verdicts = findCase(target).explained
    if (verdicts.length === 0) return
    const { state, diagnosis } = summarize(verdicts)
    const text = `${state} ${diagnosis}`
    if (headlines.get(target) !== text) {
      headlines.set(target, text)
      const { hello: { pid }, thread } = target
      seen.headlines.push({ seconds: uptimeSeconds(target), pid, thread, state, diagnosis })
    }
    const confirmed = verdicts.find(verdict =>
      verdict.state === 'confirmed' && until.includes(verdict.diagnosis))
    if (confirmed?.suspects) setTimeout(end, 3000).unref()
  })
}

main(JSON.parse(process.argv[2]))
