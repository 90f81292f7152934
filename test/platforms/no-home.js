'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { fetchNode } = require('../../scripts/fetch-node')
const { ROOT } = require('./glibc')
const { STRANGER, whyNoRooms, withoutHome } = require('./rooms')
const { checkExporter, checkFound, read, report, tellFacts } = require('./tried')

const NODES = ['20.20.2', '24.21.0']

/** @type {import('./run').Platform} */
const noHome = {
  title: 'user without a home',
  missing: whyNoRooms,
  nodes: NODES,
  cases: folder => NODES.flatMap(version => {
    const at = { node: fetchNode(version), root: ROOT }
    fs.chmodSync(folder, 0o755)
    const place = withoutHome(at, fs.mkdtempSync(path.join(folder, 'root-')))
    const volume = fs.mkdtempSync(path.join(folder, 'volume-'))
    fs.chownSync(volume, STRANGER, STRANGER)
    return [
      {
        title: 'the agent alone reports the same values as on glibc',
        node: version,
        test: async () => (await tellFacts(place)).known
      },
      {
        title: 'array-buffer-pile-up: found',
        node: version,
        async test () {
          const app = path.join(place.root, 'lab/apps/array-buffer-pile-up.js')
          const told = read(await report(place, [
            'run', '--for', '45', '--', place.node, '--max-semi-space-size=1',
            '--max-old-space-size=256', app
          ]))
          checkFound(told, 'array-buffer-pile-up')
        }
      },
      {
        title: 'the exporter with socket and history in a volume watches an app and saves its ' +
          'history',
        node: version,
        test: () => checkExporter(place, volume)
      }
    ]
  })
}

module.exports = { noHome }
