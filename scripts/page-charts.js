'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { partsOfTracks } = require('../engine/memory/track-parts')

/** A browser finds its import at another address, so the module is evaluated without it. */
const source = fs
  .readFileSync(path.join(__dirname, '../exporter/page/charts.mjs'), 'utf8')
  .replace(/^export |^import .*/gm, '')

/** @type {readonly import('../exporter/page/charts.mjs').Chart[]} the charts of the exporter's page */
// eslint-disable-next-line no-new-func
const charts = new Function('partsOfTracks', `${source}; return charts`)(partsOfTracks)

module.exports = { charts }
