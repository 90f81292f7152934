'use strict'

/**
 * `npm run test:nodes`: the tests of the agent on each Node.js that it supports. The binaries are
 * npm packages, fetched once into the tools folder. What follows `--` goes to jest, as
 * `npm run test:nodes -- -t 'frozen'`; TEST_NODE_VERSIONS=18.20.8,26.10.0 chooses versions.
 */

const fs = require('node:fs')
const path = require('node:path')
const { spawnSync } = require('node:child_process')
const { ROOT } = require('./generate')
const { toolsFolder } = require('./tools-folder')

/** The newest of each line, exact, so that a run can be repeated. */
const VERSIONS = ['18.20.8', '20.20.2', '22.23.3', '24.21.0', '26.10.0']

/**
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

function main () {
  const versions = process.env.TEST_NODE_VERSIONS?.split(',') ?? VERSIONS
  const results = versions.map(version => {
    console.log(`\n== Node.js ${version}`)
    const { status } = spawnSync(
      'npx',
      ['--no-install', 'jest', 'test/agent', ...process.argv.slice(2)],
      {
        cwd: ROOT,
        stdio: 'inherit',
        env: { ...process.env, TEST_NODES: fetchNode(version) }
      }
    )
    return { version, passed: status === 0 }
  })
  console.log(
    `\n${results.map(({ version, passed }) => `Node.js ${version}: ` +
      `${passed ? 'passed' : 'FAILED'}`).join('\n')}`
  )
  process.exitCode = results.every(({ passed }) => passed) ? 0 : 1
}

main()
