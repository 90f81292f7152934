'use strict'

const fs = require('node:fs')
const path = require('node:path')

/** What the tests of alerts run; the second name is Debian's. */
const TOOLS = {
  prometheus: ['prometheus'],
  promtool: ['promtool'],
  alertmanager: ['alertmanager', 'prometheus-alertmanager'],
  amtool: ['amtool']
}

const MISSING = 'prometheus, promtool, alertmanager and amtool are not all on the PATH. Debian and Ubuntu: apt-get install prometheus prometheus-alertmanager; elsewhere see prometheus.io/download. The tests of alerts do not run without them.'

/** @param {string[]} names @returns {string | undefined} */
function which (names) {
  for (const folder of (process.env.PATH ?? '').split(path.delimiter)) {
    for (const name of names) {
      const file = path.join(folder, name)
      if (fs.existsSync(file)) return file
    }
  }
}

/** @returns {Record<keyof typeof TOOLS, string> | null} name → file; null where one is missing */
function findTools () {
  const found = Object.entries(TOOLS).map(([name, names]) => [name, which(names)])
  return found.every(([, file]) => file) ? Object.fromEntries(found) : null
}

module.exports = { findTools, MISSING }
