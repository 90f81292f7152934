'use strict'

const { createMemoryGroup } = require('../../exporter/process/memory-group')

/**
 * it() and describe() for tests that need memory cgroups. Without them, as for a user who is not
 * root, they are skipped with one loud line; in CI they run, and fail.
 */

const probe = createMemoryGroup({ limitBytes: 2 ** 30, name: 'probe' })
afterAll(() => probe.remove())

const runs = probe.supported || Boolean(process.env.CI)
if (!runs) process.stderr.write(`SKIPPED: tests in memory cgroups: ${probe.reason}\n`)

const itInGroup = runs ? it : it.skip
const describeInGroup = runs ? describe : describe.skip

module.exports = { itInGroup, describeInGroup }
