'use strict'

/**
 * `npm run recordings -- FILE…`: copies recordings of the accuracy bench to test/recordings,
 * without the folders and the name of this machine. Then run `npm run baseline`.
 */

const fs = require('node:fs')
const path = require('node:path')
const { constants, gunzipSync, gzipSync } = require('node:zlib')

const FOLDER = path.join(__dirname, '../test/recordings')

/**
 * @param {string} text of a recording
 * @returns {string}
 */
const withoutMachine = text => text
  .replace(/"\/[^"]*\/(agent\/index\.js|lab\/apps\/[^"/]+\.js)"/g, '"$1"')
  .replace(/"\/[^"]*\/bin\/node"/g, '"node"')
  .replace(/"agentFolder":"[^"]*"/g, '"agentFolder":"/srv/memwatch/agent"')
  .replace(/"host":"[^"]*"/g, '"host":"lab"')

const files = process.argv.slice(2)
if (files.length === 0) {
  console.error(
    'usage: npm run recordings -- FILE…  (NODE-APP-FORM.ndjson.gz, from the --out folder of npm ' +
      'run bench:accuracy)'
  )
  process.exitCode = 2
}
for (const file of files) {
  // A run that was killed leaves its last block unfinished.
  const text = gunzipSync(fs.readFileSync(file), { finishFlush: constants.Z_SYNC_FLUSH }).toString()
  fs.writeFileSync(
    path.join(FOLDER, path.basename(file)),
    gzipSync(withoutMachine(text), { level: 9 })
  )
}
console.log(`${files.length} recordings in ${path.relative(process.cwd(), FOLDER)}`)
