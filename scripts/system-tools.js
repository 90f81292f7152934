'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { spawnSync } = require('node:child_process')

/** What the tests run beside npm's packages; the second name is Debian's. */
const TOOLS = {
  prometheus: ['prometheus'],
  promtool: ['promtool'],
  alertmanager: ['alertmanager', 'prometheus-alertmanager'],
  amtool: ['amtool'],
  // The commands of the runbooks.
  curl: ['curl'],
  jq: ['jq'],
  // The exporter's page is looked at.
  chromium: ['chromium', 'chromium-browser', 'google-chrome']
}

/** Debian's packages that hold them. */
const PACKAGES = ['prometheus', 'prometheus-alertmanager', 'libjemalloc2', 'curl', 'jq', 'chromium']

const MISSING = `prometheus, promtool, alertmanager, amtool, curl, jq, chromium and libjemalloc.so.2 are not all here. Debian and Ubuntu: apt-get install ${PACKAGES.join(' ')}; elsewhere see prometheus.io/download and jemalloc.net. Tests that need them do not run without.`

/** @param {string[]} names @returns {string | undefined} */
function which (names) {
  for (const folder of (process.env.PATH ?? '').split(path.delimiter)) {
    for (const name of names) {
      const file = path.join(folder, name)
      if (fs.existsSync(file)) return file
    }
  }
}

/** A library that the loader finds by its plain name, as LD_PRELOAD asks for it. @returns {string | undefined} */
function findJemalloc () {
  const { stdout } = spawnSync('/sbin/ldconfig', ['-p'], { encoding: 'utf8' })
  return /libjemalloc\.so\.2 .*=> (\S+)/.exec(stdout ?? '')?.[1]
}

/** @returns {Record<keyof typeof TOOLS | 'jemalloc', string> | null} name → file; null where one is missing */
function findTools () {
  const found = [...Object.entries(TOOLS).map(([name, names]) => [name, which(names)]), ['jemalloc', findJemalloc()]]
  return found.every(([, file]) => file) ? Object.fromEntries(found) : null
}

module.exports = { findTools, PACKAGES, MISSING }
