'use strict'

/** @type {Partial<import('../cases').Healthy>} */
module.exports = {
  title: 'esbuild, building three.js each second',
  packages: { esbuild: '0.25.10', three: '0.180.0' },
  load: 'a build a second',
  app () {
    const esbuild = require('esbuild')
    const options = {
      stdin: { contents: 'export * from "three"', resolveDir: '.' },
      bundle: true, minify: true, sourcemap: 'inline', write: false, logLevel: 'error'
    }
    setInterval(() => esbuild.build(options).catch(() => {}), 1000)
  }
}
