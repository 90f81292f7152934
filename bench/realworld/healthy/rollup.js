'use strict'

const fs = require('node:fs')
const path = require('node:path')

/** @type {Partial<import('../cases').Healthy>} */
module.exports = {
  title: 'a rollup build of three and rxjs',
  packages: {
    rollup: '4.52.3', '@rollup/plugin-node-resolve': '16.0.1', '@rollup/plugin-terser': '0.4.4',
    three: '0.180.0', rxjs: '7.8.2'
  },
  seconds: 120,
  load: 'one build',
  prepare (folder) {
    fs.writeFileSync(
      path.join(folder, 'index.mjs'),
      'import * as three from "three"; import * as rxjs from "rxjs"; export { three, rxjs }'
    )
  },
  command: [
    'node_modules/rollup/dist/bin/rollup', 'index.mjs', '-d', 'dist', '-m', '-p', 'node-resolve',
    '-p', 'terser'
  ]
}
