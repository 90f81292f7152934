'use strict'

/**
 * Installs the tools of the tests: Prometheus, Alertmanager, jemalloc, image builders, shells, Helm
 * and others, and a Node.js with a memory bug that a test reproduces. As root on Debian and Ubuntu,
 * it installs the distribution's packages without starting their daemons. With Go it builds the
 * tools that read Kubernetes' manifests. On other systems it lists the missing tools. It fails if
 * CI is set, because a skipped test is a failure there.
 */

const fs = require('node:fs')
const { once } = require('node:events')
const { spawn, spawnSync } = require('node:child_process')
const { LEAKY_NODE, fetchNode } = require('./fetch-node')
const { findGoTools, GO_MISSING } = require('./go-tools')
const { sets } = require('./system-tools')

const POLICY = '/usr/sbin/policy-rc.d'

/**
 * Runs a program with a time limit, because a hanging mirror must not block the tests.
 * @param {string} file
 * @param {string[]} args
 */
function run (file, args) {
  console.log(`$ ${file} ${args.join(' ')}`)
  const { status, error } = spawnSync(file, args, {
    stdio: ['ignore', 'ignore', 'inherit'],
    timeout: 300_000,
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  })
  if (status !== 0) console.error(`${file} failed: ${error?.message ?? `status ${status}`}`)
}

/**
 * invoke-rc.d runs this file to ask if a daemon may start: 101 means no. An existing file of the
 * machine is restored afterwards.
 * @param {string[]} packages
 */
function installPackages (packages) {
  const own = fs.existsSync(POLICY)
    ? { content: fs.readFileSync(POLICY), mode: fs.statSync(POLICY).mode }
    : null
  fs.writeFileSync(POLICY, '#!/bin/sh\nexit 101\n')
  fs.chmodSync(POLICY, 0o755)
  try {
    run('apt-get', ['update'])
    run('apt-get', [
      'install',
      '-y',
      '--no-install-recommends',
      '-o',
      'DPkg::Lock::Timeout=120',
      ...packages
    ])
  } finally {
    if (own) {
      fs.writeFileSync(POLICY, own.content)
      fs.chmodSync(POLICY, own.mode)
    } else {
      fs.rmSync(POLICY, { force: true })
    }
  }
}

async function main () {
  // The compiler runs on another core while packages are unpacked.
  const building = findGoTools()
    ? undefined
    : once(
      spawn(process.execPath, [require.resolve('./go-tools')], {
        stdio: ['ignore', 'inherit', 'inherit']
      }),
      'close'
    )
  const wanted = Object.values(sets)
    .filter(({ find }) => !find())
    .flatMap(({ packages }) => packages)
  if (wanted.length > 0 && process.getuid?.() === 0 && fs.existsSync('/usr/bin/apt-get')) {
    installPackages(wanted)
  }
  try {
    console.log(`Node.js ${LEAKY_NODE}: ${fetchNode(LEAKY_NODE)}`)
  } catch (error) {
    console.log(`SKIPPED: Node.js ${LEAKY_NODE}: ${/** @type {Error} */ (error).message}`)
    if (process.env.CI) process.exitCode = 1
  }
  await building
  for (const { find, missing } of [
    ...Object.values(sets),
    { find: findGoTools, missing: GO_MISSING }
  ]) {
    const tools = find()
    if (!tools) {
      console.log(`SKIPPED: ${missing}`)
      if (process.env.CI) process.exitCode = 1
    }
    for (const [name, file] of Object.entries(tools ?? {})) console.log(`${name}: ${file}`)
  }
}

if (require.main === module) main()

module.exports = { installPackages }
