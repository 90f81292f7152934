'use strict'

/**
 * `npm run release:prepare -- 1.2.0`: writes the version in all places, and turns the unreleased
 * changes of CHANGELOG.md into those of 1.2.0. A maintainer reads and commits the result, then tags
 * the commit v1.2.0.
 */

const fs = require('node:fs')
const path = require('node:path')
const { execFileSync } = require('node:child_process')
const { findGoTools, GO_MISSING } = require('../go-tools')
const { cutVersion } = require('./changelog')
const { VERSION, writeVersion } = require('./versions')

const ROOT = path.join(__dirname, '../..')
const CHANGELOG = path.join(ROOT, 'CHANGELOG.md')
/** The order matters: the lock file depends on the manifests, and kustomize on the chart. */
const COMMANDS = [
  ['npm', 'run', '--silent', 'generate'],
  ['npm', 'install', '--package-lock-only', '--ignore-scripts'],
  ['npm', 'run', '--silent', 'generate:deploy']
]

function main () {
  const [version = ''] = process.argv.slice(2)
  if (!VERSION.test(version)) {
    throw new Error('expected a version, as in: npm run release:prepare -- 1.2.0')
  }
  // This check precedes all writes, because the files from the chart need Helm.
  if (!findGoTools()) throw new Error(GO_MISSING)
  const date = new Date().toISOString().slice(0, 10)
  fs.writeFileSync(CHANGELOG, cutVersion(fs.readFileSync(CHANGELOG, 'utf8'), version, date))
  writeVersion(version)
  for (const [file, ...args] of COMMANDS) execFileSync(file, args, { cwd: ROOT, stdio: 'inherit' })
  console.log(`read the changes, commit them, and tag the commit v${version}`)
}

try {
  main()
} catch (error) {
  console.error(/** @type {Error} */ (error).message)
  process.exitCode = 1
}
