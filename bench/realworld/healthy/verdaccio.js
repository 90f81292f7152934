'use strict'

const fs = require('node:fs')
const path = require('node:path')

/** @type {Partial<import('../cases').Healthy>} */
module.exports = {
  title: 'verdaccio, a registry, with requests for packages that it does not have',
  packages: { verdaccio: '6.3.2' },
  overrides: { 'node-fetch': '2.7.0' },
  limitMib: 1024,
  load: '40 requests a second',
  prepare (folder) {
    fs.writeFileSync(path.join(folder, 'config.yaml'), [
      'storage: ./storage',
      'auth: { htpasswd: { file: ./htpasswd } }',
      'packages: { "**": { access: $all, publish: $all } }',
      'log: { type: stdout, format: json, level: error }',
      ''
    ].join('\n'))
  },
  app ({ port }) {
    process.argv = [
      process.argv[0], 'verdaccio', '--config', 'config.yaml', '--listen', `127.0.0.1:${port}`
    ]
    require('verdaccio/bin/verdaccio')
  },
  traffic ({ port, perSecond, request }) {
    const paths = ['/-/ping', '/lodash', '/', '/-/v1/search?text=log', '/-/verdaccio/data/packages']
    perSecond(40, n => request(port, { path: paths[n % paths.length] }))
  }
}
