'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { isDeepStrictEqual } = require('node:util')
const { toolsFolder } = require('../../scripts/tools-folder')

/** File written last: without it the installation was interrupted. */
const DONE = 'installed.json'

/**
 * A folder with packages at exact versions, kept between runs. Packages run no install scripts, so
 * no case may depend on one.
 * @param {string} name of the folder
 * @param {Record<string, string>} packages versions by name
 * @param {Record<string, string>} [overrides] of what the packages depend on
 * @returns {Promise<string>} path of the folder
 * @throws {Error} with the output of npm
 */
async function install (name, packages, overrides = {}) {
  const folder = path.join(toolsFolder(), 'realworld', name)
  const done = path.join(folder, DONE)
  const wanted = { packages, overrides }
  if (fs.existsSync(done) && isDeepStrictEqual(JSON.parse(fs.readFileSync(done, 'utf8')), wanted)) {
    return folder
  }
  fs.rmSync(folder, { recursive: true, force: true })
  fs.mkdirSync(folder, { recursive: true })
  fs.writeFileSync(
    path.join(folder, 'package.json'),
    JSON.stringify({ name: `realworld-${name}`, private: true, dependencies: packages, overrides })
  )
  if (Object.keys(packages).length > 0) await npmInstall(folder)
  fs.writeFileSync(done, JSON.stringify(wanted))
  return folder
}

/** @param {string} folder */
async function npmInstall (folder) {
  const npm = spawn(
    'npm',
    [
      'install',
      '--ignore-scripts',
      '--legacy-peer-deps',
      '--no-audit',
      '--no-fund',
      '--no-package-lock',
      '--loglevel=error'
    ],
    { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] }
  )
  let said = ''
  npm.stderr.on('data', chunk => { said += chunk })
  const [status] = await once(npm, 'close')
  if (status !== 0) throw new Error(`npm install failed in ${folder}: ${said.trim().slice(-500)}`)
}

module.exports = { install }
