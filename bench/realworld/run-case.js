'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { fetchNode } = require('../../scripts/fetch-node')
const { install } = require('./install')

const WATCH = path.join(__dirname, 'watch.js')
const START = path.join(__dirname, 'start.js')
/** Additional time for a run beyond its length, as a program may be slow to end. */
const SPARE_SECONDS = 60

/**
 * Installs a case, and runs it as `memwatch run` does.
 * @param {import('./cases').Run} run
 * @param {object} [options]
 * @param {number} [options.seconds] length of the run, instead of the case's own
 * @param {string} [options.untilKnown] id of a known bug: the run may end once a verdict names it
 * @returns {Promise<import('./watch').Watched>}
 * @throws {Error} if it cannot be installed or run
 */
async function runCase (run, { seconds = run.seconds, untilKnown } = {}) {
  const { case: name, form, file, of, packages, node, env, limitMib, expect } = run
  const overrides = 'overrides' in of ? of.overrides : undefined
  const folder = await install(`${name}-${form}`, packages, overrides)
  fs.copyFileSync(file, path.join(folder, 'case.js'))
  fs.copyFileSync(START, path.join(folder, 'start.js'))
  if ('prepare' in of) of.prepare?.(folder)
  const binary = fetchNode(node)
  const command = 'command' in of && of.command ? of.command : ['start.js', 'app']
  /** @type {import('./watch').Job} */
  const job = {
    command: [binary, ...command],
    traffic: of.traffic ? [process.execPath, 'start.js', 'traffic'] : null,
    env,
    limitMib,
    seconds,
    until: form === 'leaky' ? expect : [],
    untilKnown: untilKnown ?? null
  }
  const log = path.join(folder, 'output.log')
  const output = fs.openSync(log, 'w')
  const child = spawn(process.execPath, [WATCH, JSON.stringify(job)], {
    cwd: folder,
    env: { ...process.env, NODE_OPTIONS: '' },
    stdio: ['ignore', 'pipe', output],
    timeout: (seconds + SPARE_SECONDS) * 1000
  })
  fs.closeSync(output)
  let text = ''
  child.stdout?.on('data', chunk => { text += chunk })
  const [status, signal] = await once(child, 'close')
  if (status !== 0) throw new Error(`watching ended with ${status ?? signal}; see ${log}`)
  fs.writeFileSync(path.join(folder, 'watched.json'), text)
  return JSON.parse(text)
}

module.exports = { runCase }
