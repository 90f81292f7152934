'use strict'

/**
 * `npm run test:install` tests the packages as users get them. It publishes all of them to a
 * registry on the loopback interface, and installs them in empty folders: by npm, pnpm and both
 * versions of yarn, on each Node.js. Minimum versions of Node.js are enforced if the package
 * manager supports it.
 *
 *   npm run test:install -- --only pnpm cases whose sentence contains the word
 */

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { parseArgs } = require('node:util')
const { fetchNode } = require('../../scripts/fetch-node')
const { managers } = require('./managers')
const { cases } = require('./cases')
const { publishPackages, startRegistry } = require('./registry')

/** Minimum version of the command line, and the newest version of each line. */
const NODES = ['20.19.0', '20.20.2', '22.23.3', '24.21.0', '26.10.0']

const { values: { only } } = parseArgs({ options: { only: { type: 'string' } } })

/**
 * @param {string} what
 * @param {() => string} fetch
 * @returns {string | undefined} path; undefined if it cannot be installed
 */
function tryFetch (what, fetch) {
  try {
    return fetch()
  } catch (error) {
    console.log(`SKIPPED: ${what}: ${/** @type {Error} */ (error).message}`)
  }
}

async function main () {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-install-'))
  const counts = { passed: 0, failed: 0, skipped: 0 }
  const registry = await startRegistry(folder)
  try {
    publishPackages(registry, folder)
    for (const { title, node, manager, test } of cases(NODES)) {
      if (only && !title.includes(only)) continue
      const binary = tryFetch(`Node.js ${node}`, () => fetchNode(node))
      const script = tryFetch(manager, () => managers[manager].fetch())
      if (!binary || !script) {
        counts.skipped++
        continue
      }
      const at = fs.mkdtempSync(path.join(folder, 'app-'))
      try {
        const measured = await test({
          folder: at,
          version: node,
          node: binary,
          manager: managers[manager],
          script,
          registry
        })
        counts.passed++
        console.log(`passed: ${title}${measured ? `: ${measured}` : ''}`)
      } catch (error) {
        counts.failed++
        console.log(`FAILED: ${title}\n${/** @type {Error} */ (error).stack}`)
      }
      fs.rmSync(at, { recursive: true, force: true })
    }
  } finally {
    await registry.stop()
    fs.rmSync(folder, { recursive: true, force: true })
  }
  console.log(`\n${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`)
  process.exitCode = counts.failed === 0 && counts.passed > 0 ? 0 : 1
}

main()
