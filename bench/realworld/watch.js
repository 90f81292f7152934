'use strict'

/**
 * Runs one program like `memwatch run`, in a memory cgroup, and prints its findings with their
 * times as JSON, because the report has only the final state. Each run has a process of its own.
 *
 *   node watch.js JOB    JOB: a Job as JSON
 */

const { spawn } = require('node:child_process')
const { watchCommand } = require('../../cli/watch/watch-command')
const { attachedVerdicts } = require('../../engine/verdicts/attached')
const { summarize } = require('../../engine/verdicts/headline')
const { createMemoryGroup } = require('../../exporter/process/memory-group')
const { freePort } = require('../../test/support/free-port')

/**
 * Time for which a run continues after its problem is confirmed; it ends at once if there are
 * suspects.
 */
const AFTER_CONFIRMED_SECONDS = 40
const AFTER_SUSPECTS_SECONDS = 3
/**
 * Time limit of the wait for suspects: a profile at a first suspicion takes up to 15 s under
 * `memwatch run`.
 */
const UNTIL_SUSPECTS_SECONDS = 25
const MB = 2 ** 20

/**
 * @typedef {object} Job
 * @property {string[]} command
 * @property {string[] | null} traffic command that runs its clients
 * @property {Record<string, string>} env
 * @property {number | null} limitMib
 * @property {number} seconds
 * @property {string[]} until diagnoses: the run may end once one of them is confirmed
 * @property {string | null} untilKnown id of a known bug: the run may end once a verdict names it
 *
 * @typedef {object} Change change of a verdict
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
 * @property {import('../../cli/watch/watch-command').Report} report
 * @property {Change[]} changes
 * @property {HeadlineChange[]} headlines
 * @property {{ seconds: number, kind: string }[]} captures
 * @property {{ seconds: number, id: string, diagnosis: string, likely: boolean, text: string }[]}
 *   knownBugs known bugs beside verdicts, with the times of their first mention, and first as
 * likely
 * @property {string | null} unlimited reason for a missing memory cgroup
 */

/** @param {Job} job */
async function main ({ command, traffic, env, limitMib, seconds, until, untilKnown }) {
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
  const seen = { changes: [], headlines: [], captures: [], knownBugs: [] }
  const enough = new AbortController()
  try {
    const { report } = await watchCommand({
      command: [wrapped.command, ...wrapped.args],
      shown: command,
      forSeconds: seconds,
      stdout: 2,
      env: { ...process.env, ...env, PORT: port },
      abort: enough.signal,
      onStart: exporter => note(exporter, seen, { until, untilKnown }, () => enough.abort())
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
 * @param {Pick<Job, 'until' | 'untilKnown'>} enough
 * @param {() => void} end
 */
function note (exporter, seen, { until, untilKnown }, end) {
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
    const verdicts = attachedVerdicts(target)
    if (verdicts.length === 0) return
    const { state, diagnosis } = summarize(verdicts)
    const text = `${state} ${diagnosis}`
    if (headlines.get(target) !== text) {
      headlines.set(target, text)
      const { hello: { pid }, thread } = target
      seen.headlines.push({ seconds: uptimeSeconds(target), pid, thread, state, diagnosis })
    }
    const isConfirmed = verdicts.some(({ state, diagnosis, suspects }) =>
      state === 'confirmed' && suspects !== null && until.includes(diagnosis))
    if (isConfirmed) setTimeout(end, AFTER_SUSPECTS_SECONDS * 1000).unref()
    const known = noteKnown(verdicts, uptimeSeconds(target), seen.knownBugs)
      .find(({ id }) => id === untilKnown)
    if (!known) return
    const seconds = known.likely ? AFTER_SUSPECTS_SECONDS : UNTIL_SUSPECTS_SECONDS
    setTimeout(end, seconds * 1000).unref()
  })
}

/**
 * @param {import('../../engine/verdicts/attached').AttachedVerdict[]} verdicts
 * @param {number} seconds
 * @param {Watched['knownBugs']} seen
 * @returns {Watched['knownBugs']} newly noted bugs
 */
function noteKnown (verdicts, seconds, seen) {
  const named = verdicts.flatMap(({ diagnosis, knownBugs }) =>
    knownBugs.map(({ id, likely, text }) => ({ seconds, id, diagnosis, likely, text })))
  const added = named.filter(bug => !seen.some(({ id, diagnosis, likely }) =>
    id === bug.id && diagnosis === bug.diagnosis && likely === bug.likely))
  seen.push(...added)
  return added
}

main(JSON.parse(process.argv[2]))
