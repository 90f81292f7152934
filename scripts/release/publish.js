'use strict'

/**
 * Publishes the packages of a folder to npm, with provenance: `node scripts/release/publish.js
 * dist/assets`. It skips a package whose version is already published, so that an interrupted
 * release can run again. --dry-run prints the commands.
 */

const path = require('node:path')
const { spawnSync } = require('node:child_process')
const { parseArgs } = require('node:util')
const { folders, nameOf, version } = require('../packages')

/**
 * @param {string} folder
 * @param {string} [release] version
 * @returns {{ name: string, args: string[] }[]} npm's arguments for each package; a pre-release
 *   gets the tag `next`, so that `npm install` keeps to releases
 */
const publishCommands = (folder, release = version) =>
  folders.map(nameOf).map(name => ({
    name,
    args: [
      'publish',
      // Name that `npm pack` gives to the archive of a package with a scope.
      path.resolve(folder, `${name.replace('@', '').replace('/', '-')}-${release}.tgz`),
      '--provenance',
      '--access', 'public',
      '--tag', release.includes('-') ? 'next' : 'latest'
    ]
  }))

/**
 * @param {string} name
 * @returns {boolean} true if the registry has this version of the package
 */
const isPublished = name =>
  spawnSync('npm', ['view', `${name}@${version}`, 'version'], { encoding: 'utf8' })
    .stdout.trim() === version

function main () {
  const { values: { 'dry-run': dryRun }, positionals: [folder] } = parseArgs({
    options: { 'dry-run': { type: 'boolean' } },
    allowPositionals: true
  })
  if (!folder) throw new Error('expected the folder of the packages')
  for (const { name, args } of publishCommands(folder)) {
    if (dryRun) console.log(['npm', ...args].join(' '))
    else if (isPublished(name)) console.log(`${name}@${version} is published already`)
    else if (spawnSync('npm', args, { stdio: 'inherit' }).status !== 0) {
      throw new Error(`${name}@${version} is not published; run this again`)
    }
  }
}

if (require.main === module) {
  try {
    main()
  } catch (error) {
    console.error(/** @type {Error} */ (error).message)
    process.exitCode = 1
  }
}

module.exports = { publishCommands }
