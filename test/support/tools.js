'use strict'

const { findTools, MISSING } = require('../../scripts/system-tools')

/**
 * describe() for tests that need the tools: without them they are skipped with one loud line, and in CI they fail.
 * @param {string} title @param {(tools: NonNullable<ReturnType<typeof findTools>>) => void} tests
 */
function describeWithTools (title, tests) {
  const tools = findTools()
  if (tools) return describe(title, () => tests(tools))
  if (process.env.CI) {
    return describe(title, () => {
      it('has its tools', () => { throw new Error(MISSING) })
    })
  }
  process.stderr.write(`SKIPPED: ${title}: ${MISSING}\n`)
  describe.skip(title, () => tests(/** @type {any} */ ({})))
}

module.exports = { describeWithTools }
