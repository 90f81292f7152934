'use strict'

const { createMemoryGroup } = require('../../exporter/process/memory-group')
const { findCase } = require('../../engine/verdicts/case')
const { startExporter, eventually } = require('../support/exporter')
const { environment, spawnBounded } = require('../support/agent-collector')
const { MIB } = require('../support/frames')
const { itInGroup } = require('../support/memory-groups')

const AGENT = require.resolve('memwatch/agent')
const CLUSTER = require.resolve('../support/cluster-app')
const PROCESSES = 5

itInGroup('a cluster in a container is judged as a whole: one heap fits, five do not', async () => {
  const group = createMemoryGroup({ limitBytes: 700 * MIB, name: 'cluster' })
  expect([group.supported, group.reason]).toEqual([true, undefined])
  const exporter = await startExporter()
  const { command, args } = group.wrap(process.execPath, ['-r', AGENT, CLUSTER])
  const app = spawnBounded(command, args, {
    env: environment({
      MEMWATCH_SOCKET: exporter.socket.path,
      MEMWATCH_NAME: 'shop',
      MEMWATCH_INTERVAL_SECONDS: '0.2'
    })
  })
  try {
    const together = target =>
      findCase(target).verdicts.find(
        ({ diagnosis, summary }) =>
          diagnosis === 'container-limit-mismatch' &&
          summary.startsWith(`${PROCESSES} processes share the container's 700 MiB`)
      )
    const targets = await eventually(
      () => exporter.exporter.targets,
      targets => targets.length === PROCESSES && targets.every(together)
    )
    expect(new Set(targets.map(({ hello }) => hello.cgroup)).size).toBe(1)
    for (const target of targets) {
      expect(together(target)).toMatchObject({
        state: 'suspected',
        fix: expect.arrayContaining([
          expect.objectContaining({
            title: expect.stringMatching(/^Limit the old space to \d+ MiB/)
          })
        ])
      })
    }
  } finally {
    app.child.kill()
    await app.ended
    await exporter.stop()
    await group.remove()
  }
}, 60_000)
