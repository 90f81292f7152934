'use strict'

const { sets } = require('../../scripts/system-tools')

/**
 * describe() for tests that need the tools: without them they are skipped with one loud line, and in CI they fail.
 * @param {string} title @param {(tools: Record<string, string>) => void} tests
 * @param {keyof typeof sets} [set] which of them
 */
function describeWithTools (title, tests, set = 'monitoring') {
  const { find, missing } = sets[set]
  const tools = find()
  if (tools) return describe(title, () => tests(tools))
  if (process.env.CI) {
    return describe(title, () => {
      it('has its tools', () => { throw new Error(missing) })
    })
  }
  process.stderr.write(`SKIPPED: ${title}: ${missing}\n`)
  describe.skip(title, () => tests(/** @type {any} */ ({})))
}

module.exports = { describeWithTools }
