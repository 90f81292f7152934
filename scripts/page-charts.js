'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { partsOfTracks } = require('../engine/memory/track-parts')

/**
 * The module's import has a URL that only the browser can resolve, so the module is evaluated
 * without it.
 */
const source = fs
  .readFileSync(path.join(__dirname, '../exporter/page/charts.mjs'), 'utf8')
  .replace(/^export |^import .*/gm, '')

/**
 * The charts of the exporter's page, and the parts of its bar of RSS.
 * @type {Pick<typeof import('../exporter/page/charts.mjs'), 'charts' | 'partGroups'>}
 */
// eslint-disable-next-line no-new-func
const page = new Function('partsOfTracks', `${source}; return { charts, partGroups }`)(partsOfTracks)

module.exports = { charts: page.charts, partGroups: page.partGroups }
