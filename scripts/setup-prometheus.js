'use strict'

/**
 * Makes prometheus, promtool, alertmanager and amtool available to the tests. On Debian and Ubuntu, as root, it installs the
 * distribution's packages (no daemon is started); elsewhere it says what is missing – and fails when CI is set, where a
 * skipped test is a failure.
 */

const fs = require('node:fs')
const { spawnSync } = require('node:child_process')
const { findTools, MISSING } = require('./prometheus-tools')

const POLICY = '/usr/sbin/policy-rc.d'

/** @param {string} file @param {string[]} args */
function run (file, args) {
  console.log(`$ ${file} ${args.join(' ')}`)
  return spawnSync(file, args, { stdio: ['ignore', 'ignore', 'inherit'], timeout: 300_000, env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } }).status === 0
}

/** invoke-rc.d asks this file whether a daemon may be started: 101 is no. */
function install () {
  const ownPolicy = !fs.existsSync(POLICY)
  if (ownPolicy) fs.writeFileSync(POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755 })
  try {
    run('apt-get', ['update'])
    run('apt-get', ['install', '-y', '--no-install-recommends', 'prometheus', 'prometheus-alertmanager'])
  } finally {
    if (ownPolicy) fs.rmSync(POLICY, { force: true })
  }
}

function main () {
  if (!findTools() && process.getuid?.() === 0 && fs.existsSync('/usr/bin/apt-get')) install()
  const tools = findTools()
  if (tools) {
    for (const [name, file] of Object.entries(tools)) console.log(`${name}: ${file}`)
    return
  }
  console.log(`SKIPPED: ${MISSING}`)
  if (process.env.CI) process.exitCode = 1
}

main()
