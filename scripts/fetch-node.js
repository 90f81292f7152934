'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { spawnSync } = require('node:child_process')
const { toolsFolder } = require('./tools-folder')

/**
 * A Node.js of an exact version, from the npm package that carries its binary. It is fetched once
 * into the tools folder.
 * @param {string} version
 * @returns {string} path of the binary
 * @throws {Error} where npm cannot fetch it
 */
function fetchNode (version) {
  const folder = path.join(toolsFolder(), 'nodes', version)
  const name = `node-${process.platform}-${process.arch}`
  const binary = path.join(folder, 'node_modules', name, 'bin/node')
  if (fs.existsSync(binary)) return binary
  fs.mkdirSync(folder, { recursive: true })
  fs.writeFileSync(path.join(folder, 'package.json'), '{ "private": true }')
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
    { cwd: folder, stdio: 'inherit' }
  )
  if (status !== 0 || !fs.existsSync(binary)) {
    throw new Error(`npm cannot install ${name}@${version}`)
  }
  return binary
}

module.exports = { fetchNode }
