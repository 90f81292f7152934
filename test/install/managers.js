'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { fetchPackage } = require('../../scripts/fetch-package')
const { SCOPE } = require('../../scripts/packages')

/**
 * A package manager in an exact version.
 * @typedef {object} Manager
 * @property {() => string} fetch path of its script, run by node
 * @property {string[]} install its command that installs the dependencies of package.json
 * @property {(folder: string, url: string) => void} configure settings: this registry, and an error
 *   for a package that does not support this Node.js
 * @property {boolean} [keepsNoVersion] true if an indirect dependency is the newest version in
 *   range, independent of other packages
 */

const write = (/** @type {string[]} */ ...file) => (/** @type {string} */ text) =>
  fs.writeFileSync(path.join(...file), text)
const npmSettings = (/** @type {string} */ folder, /** @type {string} */ url) =>
  write(folder, '.npmrc')(
    `registry=${url}/\nengine-strict=true\naudit=false\nfund=false\ncache=${folder}/.cache\n`
  )

/** @type {Record<string, Manager>} */
const managers = {
  npm: {
    fetch: () => fetchPackage('npm', '11.19.1', 'bin/npm-cli.js'),
    install: ['install'],
    configure: npmSettings
  },
  // The last version for Node.js 18.
  'npm 10': {
    fetch: () => fetchPackage('npm', '10.9.4', 'bin/npm-cli.js'),
    install: ['install'],
    configure: npmSettings
  },
  pnpm: {
    fetch: () => fetchPackage('pnpm', '12.21.0', 'bin/pnpm.mjs'),
    install: ['install'],
    configure (folder, url) {
      write(folder, '.npmrc')(`registry=${url}/\n`)
      write(folder, 'pnpm-workspace.yaml')(
        `engineStrict: true\nstoreDir: ${folder}/.store\ncacheDir: ${folder}/.cache\n` +
          // The test has just published these packages.
          `minimumReleaseAgeExclude: ['${SCOPE}/*']\n`
      )
    }
  },
  'yarn 1': {
    fetch: () => fetchPackage('yarn', '1.22.22', 'bin/yarn.js'),
    install: ['install', '--no-progress'],
    configure (folder, url) {
      write(folder, '.yarnrc')(`registry "${url}/"\ncache-folder "${folder}/.cache"\n`)
    },
    keepsNoVersion: true
  },
  // yarn 4 does not check `engines`.
  'yarn 4': {
    fetch: () => fetchPackage('@yarnpkg/cli-dist', '4.18.1', 'bin/yarn.js'),
    install: ['install', '--no-immutable'],
    configure (folder, url) {
      write(folder, 'yarn.lock')('')
      write(folder, '.yarnrc.yml')(
        `npmRegistryServer: ${url}\nunsafeHttpWhitelist: ['127.0.0.1']\nenableTelemetry: false\n` +
          'nodeLinker: node-modules\nenableGlobalCache: false\n' +
          `npmPreapprovedPackages: ['${SCOPE}/*']\n`
      )
    },
    keepsNoVersion: true
  }
}

module.exports = { managers }
