'use strict'

const { createMemoryGroup } = require('../../exporter/process/memory-group')
const { runnersWith } = require('./tools')

/** it() and describe() for tests that need memory cgroups, and thus root. */

const probe = createMemoryGroup({ limitBytes: 2 ** 30, name: 'probe' })
afterAll(() => probe.remove())

const { it: itInGroup, describe: describeInGroup } =
  runnersWith('tests in memory cgroups', probe.supported ? undefined : probe.reason)

module.exports = { itInGroup, describeInGroup }
