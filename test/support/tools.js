'use strict'

const { findGoTools, GO_MISSING } = require('../../scripts/go-tools')
const { findTools, findImageTools, MISSING, IMAGE_MISSING } = require('../../scripts/system-tools')

/**
 * describe() for tests that need the tools: without them they are skipped with one loud line, and
 * in CI they fail.
 * @template Tools
 * @param {Tools | null} tools
 * @param {string} missing
 * @param {string} title
 * @param {(tools: Tools) => void} tests
 */
function describeWith (tools, missing, title, tests) {
  if (tools) return describe(title, () => tests(tools))
  if (process.env.CI) {
    return describe(title, () => {
      it('has its tools', () => { throw new Error(missing) })
    })
  }
  process.stderr.write(`SKIPPED: ${title}: ${missing}\n`)
  describe.skip(title, () => tests(/** @type {any} */ ({})))
}

/**
 * it() and describe() for tests that the machine may be unable to run. Then they are skipped with
 * one loud line; in CI they run, and fail.
 * @param {string} title of the tests
 * @param {string | undefined} missing reason why they cannot run on this machine
 */
function runnersWith (title, missing) {
  if (missing === undefined || process.env.CI) return { it, describe }
  process.stderr.write(`SKIPPED: ${title}: ${missing}\n`)
  return { it: it.skip, describe: describe.skip }
}

/**
 * @param {string} title
 * @param {(tools: NonNullable<ReturnType<typeof findTools>>) => void} tests
 */
const describeWithTools = (title, tests) => describeWith(findTools(), MISSING, title, tests)

/**
 * @param {string} title
 * @param {(tools: import('../../scripts/go-tools').GoTools) => void} tests
 */
const describeWithGoTools = (title, tests) => describeWith(findGoTools(), GO_MISSING, title, tests)

/**
 * @param {string} title
 * @param {(tools: NonNullable<ReturnType<typeof findImageTools>>) => void} tests
 */
const describeWithImageTools = (title, tests) =>
  describeWith(findImageTools(), IMAGE_MISSING, title, tests)

module.exports = { describeWithTools, describeWithGoTools, describeWithImageTools, runnersWith }
