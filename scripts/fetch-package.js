'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { spawnSync } = require('node:child_process')
const { toolsFolder } = require('./tools-folder')

/**
 * Fetches an npm package of an exact version into the tools folder, unless it is there already.
 * Tests and benches use it for tools that the repository does not depend on.
 * @param {string} name of the package
 * @param {string} version
 * @param {string} file path below the package
 * @param {{ folder?: string, overrides?: Record<string, string> }} [options] folder: name below the
 *   tools folder; overrides: versions of its dependencies, in the form of package.json
 * @returns {string} path of the file
 * @throws {Error} if npm cannot fetch it
 */
function fetchPackage (
  name,
  version,
  file,
  { folder = path.join('packages', name, version), overrides = {} } = {}
) {
  const at = path.join(toolsFolder(), folder)
  const found = path.join(at, 'node_modules', name, file)
  if (fs.existsSync(found)) return found
  fs.mkdirSync(at, { recursive: true })
  fs.writeFileSync(path.join(at, 'package.json'), JSON.stringify({ private: true, overrides }))
  const { status } = spawnSync(
    'npm',
    [
      'install',
      '--silent',
      '--no-audit',
      '--no-fund',
      '--ignore-scripts',
      '--save-exact',
      `${name}@${version}`
    ],
    { cwd: at, stdio: 'inherit' }
  )
  if (status !== 0 || !fs.existsSync(found)) throw new Error(`npm cannot install ${name}@${version}`)
  return found
}

module.exports = { fetchPackage }
