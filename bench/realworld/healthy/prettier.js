'use strict'

const fs = require('node:fs')
const path = require('node:path')

/** @type {Partial<import('../cases').Healthy>} */
module.exports = {
  title: 'prettier over three.js',
  packages: { prettier: '3.6.2', three: '0.180.0' },
  seconds: 180,
  load: 'one run over some 700 files',
  prepare (folder) {
    const sources = path.join(folder, 'node_modules/three/src')
    fs.cpSync(sources, path.join(folder, 'format'), { recursive: true })
  },
  command: ['node_modules/prettier/bin/prettier.cjs', '--check', 'format']
}
