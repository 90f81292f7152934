'use strict'

/** @type {Partial<import('../cases').Healthy>} */
module.exports = {
  title: 'eslint over three.js and rxjs',
  packages: { eslint: '9.36.0', '@eslint/js': '9.36.0', three: '0.180.0', rxjs: '7.8.2' },
  limitMib: 1024,
  seconds: 180,
  load: 'one run over some 1,000 files',
  prepare (folder) {
    const fs = require('node:fs')
    const path = require('node:path')
    for (const name of ['three/src', 'rxjs/dist/esm']) {
      fs.cpSync(path.join(folder, 'node_modules', name), path.join(folder, 'lint', name), {
        recursive: true
      })
    }
    fs.writeFileSync(
      path.join(folder, 'eslint.config.mjs'),
      'import js from "@eslint/js"; export default [js.configs.all]'
    )
  },
  command: ['node_modules/eslint/bin/eslint.js', '--quiet', '-f', 'json', 'lint']
}
