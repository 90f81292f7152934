'use strict'

/**
 * Verdicts on the recordings of test/recordings: every diagnosis on every target. `npm run
 * baseline` writes test/recordings/baseline.json; a test compares it with the results of the code,
 * so that all effects of a changed rule are visible.
 */

const fs = require('node:fs')
const path = require('node:path')
const { replayFile } = require('../cli/sources/replay-file')
const { findCase } = require('../engine/verdicts/case')
const { primaryOf } = require('../engine/verdicts/urgency')
const { apps } = require('../lab')

const FOLDER = path.join(__dirname, '../test/recordings')
const FILE = path.join(FOLDER, 'baseline.json')

/**
 * Recordings are called NODE-APP-FORM.ndjson.gz, with a CPU quota NODE-APP-FORM@CORES.ndjson.gz.
 */
const recordings = () => fs.readdirSync(FOLDER).filter(name => name.endsWith('.ndjson.gz')).sort()

/** @param {string} name of a recording */
function appOf (name) {
  const [, id, form] = /^\d+-(.*)-(broken|fixed)(?:@[\d.]+)?\.ndjson\.gz$/.exec(name) ?? []
  const app = apps.find(app => app.id === id)
  if (!app) throw new Error(`${name}: no app of the lab is called ${id}`)
  return { app, form }
}

/**
 * @typedef {object} Baseline baseline of one recording
 * @property {string | null} expected diagnosis of the app; null for a healthy or a repaired one
 * @property {string | null} gone diagnosis before the printed fix was applied; after it other
 *   findings may appear
 * @property {string | null} primary primary diagnosis of the main thread, otherwise of a worker
 * @property {string[]} ever all diagnoses confirmed at any time
 * @property {Record<string, Record<string, string>>} states states at the end, by thread and
 *   diagnosis
 */

/**
 * @param {string} name
 * @param {(verdict: import('../engine/verdicts/evaluate').Verdict) => void} [onVerdict] called for
 *   each verdict whose state changed
 * @returns {Promise<Baseline>}
 */
async function baselineOf (name, onVerdict = () => {}) {
  const { app, form } = appOf(name)
  /** @type {Set<string>} */
  const ever = new Set()
  const { targets } = await replayFile(path.join(FOLDER, name), {
    onVerdict: (_, verdict) => {
      if (verdict.state === 'confirmed' && !verdict.opportunity) ever.add(verdict.diagnosis)
      onVerdict(verdict)
    },
    onError: error => { throw error }
  })
  const primaries = targets.sort((a, b) => a.hello.threadId - b.hello.threadId)
    .map(target => primaryOf(verdictsOf(target, name.includes('@')))?.diagnosis)
  return {
    expected: form === 'broken' ? app.diagnosis : null,
    gone: form === 'fixed' && app.fixedBy === 'fix' ? app.diagnosis : null,
    primary: primaries.find(Boolean) ?? null,
    ever: [...ever],
    states: Object.fromEntries(targets.map(target => [target.thread, statesOf(target)]))
  }
}

/** Diagnosis of a CPU limit that is too low. */
const QUOTA = 'cpu-throttling'

/**
 * Verdicts of a lab app. The CPU quota of a slow pod is a setting of the run: the app must get the
 * same diagnosis as without it.
 * @param {import('../engine/history/target').Target} target
 * @param {boolean} isSlowPod
 */
const verdictsOf = (target, isSlowPod) => findCase(target).verdicts
  .filter(({ diagnosis }) => !isSlowPod || diagnosis !== QUOTA)

/** @param {import('../engine/history/target').Target} target */
const statesOf = target =>
  Object.fromEntries(findCase(target).verdicts.map(({ diagnosis, state }) => [diagnosis, state]))

/**
 * @param {string} name of a recording
 * @param {Baseline} baseline
 */
function isRight (name, { expected, gone, primary, states }) {
  if (gone !== null) return primary !== gone
  const { opportunity, isOnlySuspected } = appOf(name).app
  const statesAt = (/** @type {string} */ id) => Object.values(states).map(states => states[id])
  if (expected !== null && isOnlySuspected && primary === null) {
    return statesAt(expected).includes('suspected')
  }
  const found = opportunity ? statesAt(opportunity) : []
  return primary === expected &&
    (!opportunity || found.includes('suspected') || found.includes('confirmed'))
}

async function main () {
  /** @type {Record<string, Baseline>} */
  const all = {}
  for (const name of recordings()) all[name] = await baselineOf(name)
  fs.writeFileSync(
    FILE,
    `{\n${Object.entries(all)
      .map(([name, baseline]) => `${JSON.stringify(name)}: ${JSON.stringify(baseline)}`)
      .join(',\n')}\n}\n`
  )
  const wrong = Object.entries(all).filter(([name, baseline]) => !isRight(name, baseline))
  for (const [name, { expected, primary }] of wrong) {
    console.log(`${name}: expected ${expected}, found ${primary}`)
  }
  console.log(`${Object.keys(all).length} recordings, ${wrong.length} wrong`)
}

if (require.main === module) main()

module.exports = { recordings, baselineOf, isRight, verdictsOf, FILE, QUOTA }
