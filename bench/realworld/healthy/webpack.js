'use strict'

const fs = require('node:fs')
const path = require('node:path')

/** @type {Partial<import('../cases').Healthy>} */
module.exports = {
  title: 'a webpack build of three, lodash and rxjs',
  packages: {
    webpack: '5.102.0', 'webpack-cli': '6.0.1', three: '0.180.0', lodash: '4.17.21', rxjs: '7.8.2'
  },
  limitMib: 1024,
  seconds: 120,
  load: 'one build',
  prepare (folder) {
    fs.mkdirSync(path.join(folder, 'src'), { recursive: true })
    fs.writeFileSync(
      path.join(folder, 'src/index.js'),
      'import * as three from "three"; import lodash from "lodash"; import * as rxjs from "rxjs"; ' +
        'window.all = [three, lodash, rxjs]'
    )
  },
  command: ['node_modules/webpack/bin/webpack.js', '--mode', 'production', '--devtool', 'source-map']
}
