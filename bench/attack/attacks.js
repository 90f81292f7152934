'use strict'

const { setTimeout: wait } = require('node:timers/promises')
const {
  impossibleNumbers,
  flood,
  hellosOnly,
  hostileMessages,
  idleConnections,
  junkFields,
  longestLines
} = require('./by-socket')
const { hijack } = require('./hijack')
const { hostileNames } = require('./hostile-names')
const {
  largeBodies,
  localWithoutToken,
  localWithToken,
  privateThings,
  slowClients,
  storm,
  viewers
} = require('./by-http')
const { costlyCalls } = require('./by-token')
const { afterStart, TRAPS } = require('./by-data-dir')
const { impostors } = require('./by-exporter')
const { appsAgainstAgent } = require('./by-app')
const { ATTACKER, LOOPBACK } = require('./places')

/**
 * @typedef {object} Options
 * @property {number} seconds duration of attacks that take a fixed time
 * @property {number} messages number of hostile messages
 * @property {number} seed
 * @property {(text: string) => void} say progress
 *
 * @typedef {{ text: string, held: boolean, detail: string }} Claim a condition that must hold under
 *   one attack
 *
 * @typedef {{ tried?: string, claims?: Claim[], turns?: import('./by-exporter').Turn[] }} Outcome
 *
 * @typedef {object} Attack
 * @property {Who} who
 * @property {string} what
 * @property {'sidecar' | 'node' | undefined} mode mode of the exporter; undefined without an
 *   exporter
 * @property {boolean} [hasToken] true if the exporter has a token; default: true
 * @property {(folder: string, saved: import('./by-data-dir').Saved) => void} [prepareData]
 *   before the exporter starts
 * @property {(stage: import('./stage').Stage, options: Options) => Promise<Outcome>} [run]
 * @property {(options: Options) => Promise<Outcome>} [runAlone] without an exporter
 */

/** Rows of the table of rights in SECURITY.md, recognised by words in them. */
const TRUST = {
  nobody: undefined,
  app: /app's own code/,
  socket: /agents' socket/,
  here: /clients on the same machine/,
  elsewhere: /on other machines/,
  token: /with the token/,
  disk: /--data-dir/
}
/** @typedef {keyof typeof TRUST} Who */

/** @type {Attack[]} */
const attacks = [
  { who: 'nobody', what: 'no attack', mode: 'sidecar', run: quiet },
  { who: 'nobody', what: 'no attack', mode: 'node', run: quiet },

  { who: 'socket', what: 'hostile messages', mode: 'sidecar', run: hostileMessages },
  { who: 'socket', what: 'hostile messages of a pod', mode: 'node', run: hostileMessages },
  { who: 'socket', what: 'unknown fields on 64 connections', mode: 'sidecar', run: junkFields },
  { who: 'socket', what: 'unknown fields of a pod', mode: 'node', run: junkFields },
  {
    who: 'socket',
    what: 'longest allowed lines of many targets',
    mode: 'sidecar',
    run: longestLines
  },
  { who: 'socket', what: 'longest allowed lines of a pod', mode: 'node', run: longestLines },
  {
    who: 'socket',
    what: 'idle and half-finished connections',
    mode: 'sidecar',
    run: idleConnections
  },
  {
    who: 'socket',
    what: 'idle and half-finished connections of a pod',
    mode: 'node',
    run: idleConnections
  },
  { who: 'socket', what: 'hellos without frames', mode: 'sidecar', run: hellosOnly },
  { who: 'socket', what: 'flood of frames', mode: 'sidecar', run: flood },
  { who: 'socket', what: 'flood of frames of a pod', mode: 'node', run: flood },
  { who: 'socket', what: 'impossible numbers', mode: 'sidecar', run: impossibleNumbers },
  { who: 'socket', what: 'hijack of a live target', mode: 'sidecar', run: hijack },
  {
    who: 'socket',
    what: 'names with YAML, shell commands or terminal escapes',
    mode: 'sidecar',
    run: hostileNames
  },

  {
    who: 'elsewhere',
    what: '200 scrapes a second and 1,000 idle connections',
    mode: 'sidecar',
    run: storm(ATTACKER)
  },
  {
    who: 'elsewhere',
    what: '200 scrapes a second and 1,000 idle connections at a node',
    mode: 'node',
    run: storm(ATTACKER)
  },
  { who: 'elsewhere', what: 'slow readers and writers', mode: 'sidecar', run: slowClients },
  { who: 'elsewhere', what: 'large bodies and heads', mode: 'sidecar', run: largeBodies },
  {
    who: 'elsewhere',
    what: 'private routes without the token',
    mode: 'sidecar',
    run: privateThings
  },
  {
    who: 'here',
    what: '200 scrapes a second and 1,000 idle connections from the same machine',
    mode: 'sidecar',
    run: storm(LOOPBACK)
  },
  { who: 'here', what: 'proxies and foreign host names', mode: 'sidecar', run: localWithToken },
  {
    who: 'here',
    what: 'other sites and proxies, without a token',
    mode: 'sidecar',
    hasToken: false,
    run: localWithoutToken
  },
  { who: 'here', what: 'clients that never read', mode: 'sidecar', run: viewers },

  { who: 'token', what: 'expensive calls at the allowed rate', mode: 'sidecar', run: costlyCalls },

  ...Object.entries(TRAPS).map(
    ([what, prepareData]) =>
      /** @type {Attack} */ ({ who: 'disk', what, mode: 'sidecar', prepareData, run: afterStart })
  ),

  {
    who: 'app',
    what: 'an app that attacks its own agent',
    mode: undefined,
    runAlone: appsAgainstAgent
  },
  { who: 'app', what: 'an impostor instead of the exporter', mode: undefined, runAlone: impostors }
]

/**
 * @param {import('./stage').Stage} stage
 * @param {Options} options
 * @returns {Promise<Outcome>}
 */
async function quiet (stage, { seconds }) {
  await wait(1000 * seconds)
  return { tried: `nothing, for ${seconds} s` }
}

module.exports = { attacks, TRUST }
