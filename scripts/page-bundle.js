'use strict'

/**
 * Bundles the exporter's page: a browser loads it in three requests, and the exporter needs none of
 * the page's libraries.
 */

const fs = require('node:fs')
const path = require('node:path')
const { buildSync } = require('esbuild')

const ROOT = path.join(__dirname, '..')
const PAGE = path.join(ROOT, 'exporter/page')
const BUILT = 'exporter/page/built'
/** Releases of December 2023. */
const TARGETS = ['chrome120', 'firefox121', 'safari17.2']
const LICENCE = 'uPlot is a part of this file: see licences.txt beside it.'

/**
 * Bundles an entry point with everything that it imports.
 * @param {string} contents
 * @param {'js' | 'css'} loader
 * @returns {string}
 */
function bundle (contents, loader) {
  const { outputFiles: [{ text }] } = buildSync({
    stdin: { contents, loader, resolveDir: PAGE },
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    target: TARGETS,
    banner: { [loader]: `/* ${LICENCE} */` }
  })
  return text
}

/** Contents of the served files, by path from the root. @type {Record<string, () => string>} */
const generated = {
  [`${BUILT}/page.js`]: () => bundle("import './page.mjs'", 'js'),
  [`${BUILT}/page.css`]: () =>
    bundle("@import 'uplot/dist/uPlot.min.css'; @import './page.css';", 'css'),
  [`${BUILT}/licences.txt`]: () =>
    fs.readFileSync(path.join(path.dirname(require.resolve('uplot/package.json')), 'LICENSE'), 'utf8')
}

module.exports = { generated }
