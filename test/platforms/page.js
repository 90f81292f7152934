'use strict'

const fs = require('node:fs')
const path = require('node:path')

/** Results of whole runs, by platform: docs/compatibility.md is made of them. */
const SEEN = path.join(__dirname, 'seen.json')

/**
 * @param {string} name of the platform
 * @param {import('./run').Platform} platform
 * @param {Pick<import('./run').Result, 'known' | 'verified'>} result
 */
function writeSeen (name, { title, nodes }, { known, verified }) {
  const seen = fs.existsSync(SEEN) ? JSON.parse(fs.readFileSync(SEEN, 'utf8')) : {}
  seen[name] = { title, nodes, known, verified }
  fs.writeFileSync(SEEN, `${JSON.stringify(seen, null, 2)}\n`)
  console.log('  written: test/platforms/seen.json; npm run generate makes the page of it')
}

module.exports = { writeSeen }
