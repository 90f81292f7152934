'use strict'

/**
 * `npm run bench:alerts` checks that alerts fire and resolve. For each diagnosis its lab app runs
 * live. A real Prometheus with the shipped rules scrapes it, and Alertmanager calls a webhook; the
 * bench checks the fix and the delay. Then the app runs repaired, in its code or by the received
 * fix: the alert must resolve and stay away. With --healthy the healthy apps run for --minutes, and
 * no alert may fire.
 *
 *   npm run bench:alerts -- --lanes 2 --for 5
 *   npm run bench:alerts -- --healthy --minutes 30
 *
 * Without --for each alert waits as long as it does in production: one to five minutes more.
 */

const path = require('node:path')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { setTimeout: wait } = require('node:timers/promises')
const { apps } = require('../lab')
const { diagnoses } = require('../engine/diagnoses')
const { alertRules, recordedRules, rulesYaml } = require('../scripts/alerts/index')
const { findTools, MISSING } = require('../scripts/system-tools')
const { eventually } = require('../test/support/exporter')
const { startAlertmanager } = require('../test/support/alertmanager')
const { startPrometheus } = require('../test/support/prometheus')
const { freePort } = require('../test/support/free-port')
const { startWebhook } = require('../test/support/webhook')
const { parseOptions } = require('./options')
const { repairOf } = require('./repair')

const MEMWATCH = path.join(__dirname, '../cli/memwatch.js')
/** Time limit until the webhook gets the alert, beyond the rule's own wait. */
const MOST_SECONDS = 90
/** Time for which the bench watches a repaired app. */
const REPAIRED_SECONDS = 60

const given = parseOptions(__filename, {
  diagnoses: {
    type: 'string',
    default: diagnoses
      .filter(({ runbook }) => runbook)
      .map(({ id }) => id)
      .join(',')
  },
  healthy: { type: 'boolean', default: false },
  minutes: { type: 'string', default: '30' },
  apps: {
    type: 'string',
    default: apps
      .filter(({ diagnosis, opportunity }) => diagnosis === null && !opportunity)
      .map(({ id }) => id)
      .join(',')
  },
  lanes: { type: 'string', default: '2' },
  for: { type: 'string' }
})
for (const id of given.diagnoses.split(',')) {
  if (!diagnoses.some(diagnosis => diagnosis.id === id && diagnosis.runbook)) {
    throw new Error(`--diagnoses: no alert for ${id}`)
  }
}
for (const id of given.apps.split(',')) {
  if (!apps.some(app => app.id === id)) throw new Error(`--apps: no app called ${id}`)
}
const seconds =
  given.for === undefined
    ? {}
    : { forSeconds: Number(given.for), keepFiringForSeconds: Number(given.for) }

/**
 * A lab app run by `memwatch simulate`, scraped at a port.
 * @param {string} id
 * @param {number} port
 * @param {string[]} args
 * @param {NodeJS.ProcessEnv} [env]
 */
function simulate (id, port, args, env = {}) {
  const child = spawn(
    process.execPath,
    [MEMWATCH, 'simulate', id, '--listen', `127.0.0.1:${port}`, ...args],
    { stdio: 'ignore', env: { ...process.env, NODE_OPTIONS: '', ...env } }
  )
  const ended = once(child, 'close')
  return {
    ended,
    stop: async () => {
      child.kill('SIGTERM')
      await ended
    }
  }
}

/**
 * @param {any} tools
 * @param {number[]} ports
 * @param {(() => unknown)[]} stops
 */
async function watch (tools, ports, stops) {
  const webhook = await startWebhook()
  stops.push(webhook.stop)
  const alertmanager = await startAlertmanager({
    file: tools.alertmanager,
    webhookUrl: webhook.url
  })
  stops.push(alertmanager.stop)
  const prometheus = await startPrometheus({
    file: tools.prometheus,
    rules: rulesYaml(
      { groups: [...recordedRules().groups, ...alertRules({ diagnoses, ...seconds }).groups] },
      'a bench'
    ),
    targets: ports.map(port => `127.0.0.1:${port}`),
    alertmanagerUrl: alertmanager.url
  })
  stops.push(prometheus.stop)
  return { webhook, prometheus }
}

/**
 * @param {any} tools
 * @param {string} id
 * @returns {Promise<boolean>}
 */
async function pages (tools, id) {
  const app = /** @type {import('../lab').LabApp} */ (apps.find(app => app.diagnosis === id))
  const { runbook } = /** @type {import('../engine/diagnoses/define-diagnosis').Diagnosis} */ (diagnoses.find(diagnosis => diagnosis.id === id))
  const rule = /** @type {any} */ (alertRules({ diagnoses, ...seconds }).groups.flatMap(({ rules }) => rules).find((/** @type {any} */ { alert }) => alert === runbook))
  const waits = parseInt(rule.for)
  /** @type {(() => unknown)[]} last started, first stopped */
  const stops = []
  try {
    const port = await freePort()
    const { webhook } = await watch(tools, [port], stops)
    const began = performance.now()
    const ill = simulate(app.id, port, ['--for', '900'])
    stops.push(ill.stop)
    const firing = await webhook.next(
      ({ status, labels }) => status === 'firing' && labels.alertname === runbook,
      1000 * (waits + 4 * MOST_SECONDS)
    )
    const fired = (performance.now() - began) / 1000
    const judged = await (await fetch(`http://127.0.0.1:${port}/api/v1/diagnoses`)).json()
    const change = judged.flatMap((/** @type {any} */ { verdicts }) => verdicts).find((/** @type {any} */ { diagnosis, state }) => diagnosis === id && state === 'confirmed')?.fix[0]?.change ?? {}
    await ill.stop()
    const repair = app.fixedBy === 'none' ? null : repairOf(app, change)
    const before = webhook.received.length
    if (repair) {
      stops.push(simulate(app.id, port, ['--for', '900', ...repair.args], repair.env).stop)
    }
    const resolved = await webhook
      .next(
        ({ status, labels }) => status === 'resolved' && labels.alertname === runbook,
        1000 * (waits + 420)
      )
      .then(
        () => true,
        () => false
      )
    if (repair) await wait(1000 * REPAIRED_SECONDS)
    const again = webhook.received
      .slice(before)
      .filter(({ status, labels }) => status === 'firing' && labels.alertname === runbook).length
    const right =
      fired <= waits + MOST_SECONDS && Boolean(firing.annotations.fix) && resolved && again === 0
    console.log(
      [
        right ? 'right' : 'WRONG',
        id,
        firing.labels.severity,
        `fired after ${fired.toFixed(0)} s (it waits ${waits})`,
        `fix: ${firing.annotations.fix.slice(0, 60)}`,
        resolved ? 'resolved' : 'NOT resolved',
        repair
          ? `repaired by ${app.fixedBy}: ${again === 0 ? 'stays away' : 'fires AGAIN'}`
          : 'cannot be repaired here'
      ].join('\t')
    )
    return right
  } catch (error) {
    console.log(`WRONG\t${id}\t${/** @type {Error} */ (error).message}`)
    return false
  } finally {
    for (const stop of stops.reverse()) await stop()
  }
}

/**
 * Runs all apps at once, under one Prometheus.
 * @param {any} tools
 * @param {string[]} ids
 * @returns {Promise<boolean[]>} true for each app without an alert
 */
async function staySilent (tools, ids) {
  /** @type {(() => unknown)[]} last started, first stopped */
  const stops = []
  const until = performance.now() + 60_000 * Number(given.minutes)
  try {
    const ports = await Promise.all(ids.map(() => freePort()))
    const { prometheus, webhook } = await watch(tools, ports, stops)
    const runs = await Promise.all(ids.map(async (id, i) => {
      let count = 0
      // A finished job runs again, like a cron job.
      for (; performance.now() < until; count++) {
        const app = simulate(id, ports[i], ['--for', String(60 * Number(given.minutes) + 60)])
        stops.push(app.stop)
        await eventually(
          () => prometheus.query(`memwatch_target_up{target="${id}"} == 1`),
          samples => samples.length > 0,
          60_000
        )
        const timer = new AbortController()
        await Promise.race([
          app.ended,
          wait(until - performance.now(), undefined, { signal: timer.signal }).catch(() => {})
        ])
        timer.abort()
      }
      return count
    }))
    return ids.map((id, i) => {
      // The exporter of a finished job ends with it, so a failed scrape is not the app's fault.
      const fired = webhook.received
        .filter(({ labels }) => labels.target === id && labels.alertname !== 'MemwatchExporterDown')
        .map(({ labels }) => labels.alertname)
      console.log(
        [
          fired.length === 0 ? 'right' : 'WRONG',
          id,
          fired.join(', ') || 'silent',
          `${runs[i]} run${runs[i] > 1 ? 's' : ''}`
        ].join('\t')
      )
      return fired.length === 0
    })
  } finally {
    for (const stop of stops.reverse()) await stop()
  }
}

async function main () {
  const tools = findTools()
  if (!tools) throw new Error(MISSING)
  const results = /** @type {boolean[]} */ ([])
  if (given.healthy) {
    results.push(...await staySilent(tools, given.apps.split(',')))
  } else {
    const waiting = given.diagnoses.split(',')
    await Promise.all(Array.from({ length: Number(given.lanes) }, async () => {
      for (let next = waiting.shift(); next; next = waiting.shift()) {
        results.push(await pages(tools, next))
      }
    }))
  }
  console.log(`${results.filter(Boolean).length} of ${results.length} right`)
  process.exitCode = results.every(Boolean) ? 0 : 1
}

main()
