'use strict'

/**
 * `npm run test:nodes`: runs the tests of the agent on each Node.js that it supports. The binaries
 * are npm packages, fetched once into the tools folder. Arguments after `--` go to jest, such as
 * `npm run test:nodes -- -t 'frozen'`; TEST_NODE_VERSIONS=18.20.8,26.10.0 chooses versions.
 */

const { spawnSync } = require('node:child_process')
const { ROOT } = require('./generate')
const { fetchNode } = require('./fetch-node')

/** Newest version of each line; exact versions, so that a run can be repeated. */
const VERSIONS = ['18.20.8', '20.20.2', '22.23.3', '24.21.0', '26.10.0']

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
