'use strict'

const assert = require('node:assert')
const fs = require('node:fs')
const path = require('node:path')
const { fetchNode } = require('../../scripts/fetch-node')
const { ROOT } = require('./glibc')
const { readOnly, whyNoRooms } = require('./rooms')
const { checkExporter, memwatch, read, report, tellFacts } = require('./tried')

const NODES = ['20.20.2', '24.21.0']
const APP = ['-e', 'setInterval(() => Buffer.alloc(1e6), 50)']

/** @type {import('./run').Platform} */
const readOnlyRoot = {
  title: 'read-only root',
  missing: whyNoRooms,
  nodes: NODES,
  cases: folder => NODES.flatMap(version => {
    const at = { node: fetchNode(version), root: ROOT }
    const closed = readOnly(at)
    const volume = fs.mkdtempSync(path.join(folder, 'volume-'))
    const open = readOnly(at, volume)
    const run = ['run', '--for', '4', '--', at.node, ...APP]
    return [
      {
        title: 'the agent alone reports the same values as on glibc',
        node: version,
        test: async () => (await tellFacts(closed)).known
      },
      {
        title: 'memwatch run without a writable folder prints an error that names TMPDIR',
        node: version,
        async test () {
          const { code, stderr } = await memwatch(closed, run).ended
          assert.match(stderr, /cannot create a folder in \S+: EROFS.*TMPDIR/)
          assert.doesNotMatch(stderr, /\n\s+at /)
          assert.strictEqual(code, 2)
        }
      },
      {
        title: 'memwatch run with TMPDIR in a volume evaluates the app',
        node: version,
        async test () {
          const { states, parts } = read(await report(open, run, { TMPDIR: volume }))
          assert.ok(parts.files > 0)
          assert.strictEqual(states['context-leak'], 'ok')
          assert.deepStrictEqual(
            fs.readdirSync(volume).filter(name => name.startsWith('memwatch-run')), []
          )
        }
      },
      {
        title: 'the exporter without a writable folder prints an error that names the option',
        node: version,
        async test () {
          /** @type {[string[], RegExp][]} */
          const cases = [
            [[], /--socket: cannot make .*EROFS.*Give a path in a writable folder/],
            [
              ['--socket', path.join(volume, 'a.sock'), '--data-dir', '/var/lib/memwatch-test'],
              /--data-dir: cannot make the folder .*EROFS/
            ]
          ]
          for (const [options, message] of cases) {
            const { code, stderr } = await memwatch(open, [
              'exporter', '--listen', '127.0.0.1:0', ...options
            ]).ended
            assert.match(stderr, message)
            assert.strictEqual(code, 2)
          }
        }
      },
      {
        title: 'the exporter with socket and history in a volume watches an app and saves its ' +
          'history',
        node: version,
        test: () => checkExporter(open, volume)
      }
    ]
  })
}

module.exports = { readOnlyRoot }
