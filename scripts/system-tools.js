'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { spawnSync } = require('node:child_process')

/** Programs of the tests besides npm packages, each with its names; Debian renames some. */
const TOOLS = {
  prometheus: ['prometheus'],
  promtool: ['promtool'],
  alertmanager: ['alertmanager', 'prometheus-alertmanager'],
  amtool: ['amtool'],
  // Commands in the runbooks.
  curl: ['curl'],
  jq: ['jq'],
  // A browser for the tests of the exporter's page.
  chromium: ['chromium', 'chromium-browser', 'google-chrome']
}

/** Programs that build and run the image. */
const IMAGE_TOOLS = {
  buildah: ['buildah'],
  podman: ['podman'],
  runc: ['runc'],
  mmdebstrap: ['mmdebstrap']
}

/** Shells beside bash that complete memwatch's commands. */
const SHELLS = { zsh: ['zsh'], fish: ['fish'] }

/** Debian packages that contain these programs. */
const PACKAGES = ['prometheus', 'prometheus-alertmanager', 'libjemalloc2', 'curl', 'jq', 'chromium']
const IMAGE_PACKAGES = Object.keys(IMAGE_TOOLS)
const SHELL_PACKAGES = Object.keys(SHELLS)

const MISSING = 'prometheus, promtool, alertmanager, amtool, curl, jq, chromium and ' +
  `libjemalloc.so.2 are not all here. Debian and Ubuntu: apt-get install ${PACKAGES.join(' ')}; ` +
    'elsewhere see prometheus.io/download and jemalloc.net. Tests that need them do not run ' +
      'without.'
const IMAGE_MISSING = `${IMAGE_PACKAGES.join(', ')} are not all here, or this is not root on ` +
  `Linux. Debian and Ubuntu: apt-get install ${IMAGE_PACKAGES.join(' ')}. The image is not ` +
    'built and run without.'
const SHELLS_MISSING = 'zsh and fish are not both here. Debian and Ubuntu: apt-get install ' +
  `${SHELL_PACKAGES.join(' ')}. Completion is not tried in a shell that is absent.`

/**
 * @param {string[]} names
 * @returns {string | undefined}
 */
function which (names) {
  for (const folder of (process.env.PATH ?? '').split(path.delimiter)) {
    for (const name of names) {
      const file = path.join(folder, name)
      if (fs.existsSync(file)) return file
    }
  }
}

/**
 * Finds jemalloc, if the loader finds it by its plain name, as in LD_PRELOAD.
 * @returns {string | undefined}
 */
function findJemalloc () {
  const { stdout } = spawnSync('/sbin/ldconfig', ['-p'], { encoding: 'utf8' })
  return /libjemalloc\.so\.2 .*=> (\S+)/.exec(stdout ?? '')?.[1]
}

/**
 * @returns {Record<keyof typeof TOOLS | 'jemalloc', string> | null} paths by name; null if one is
 *   missing
 */
function findTools () {
  const found = [
    ...Object.entries(TOOLS).map(([name, names]) => [name, which(names)]),
    ['jemalloc', findJemalloc()]
  ]
  return found.every(([, file]) => file) ? Object.fromEntries(found) : null
}

/**
 * @returns {Record<keyof typeof IMAGE_TOOLS, string> | null} paths by name; null if one is missing,
 *   or if this user may not use them
 */
function findImageTools () {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return null
  const found = Object.entries(IMAGE_TOOLS).map(([name, names]) => [name, which(names)])
  return found.every(([, file]) => file) ? Object.fromEntries(found) : null
}

/** @returns {Record<string, string> | null} paths by name; null if one is missing */
function findShells () {
  const found = Object.entries(SHELLS).map(([name, names]) => [name, which(names)])
  return found.every(([, file]) => file) ? Object.fromEntries(found) : null
}

/** All sets of tools for tests. */
const sets = {
  monitoring: { find: findTools, packages: PACKAGES, missing: MISSING },
  image: { find: findImageTools, packages: IMAGE_PACKAGES, missing: IMAGE_MISSING },
  shells: { find: findShells, packages: SHELL_PACKAGES, missing: SHELLS_MISSING }
}

module.exports = { findTools, findImageTools, MISSING, IMAGE_MISSING, sets }
