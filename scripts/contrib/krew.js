'use strict'

const crypto = require('node:crypto')
const fs = require('node:fs')
const path = require('node:path')
const { stringify } = require('yaml')
const { REPOSITORY, version } = require('../packages')
const { tarGz } = require('../release/archive')

const ROOT = path.join(__dirname, '../..')
const BIN = 'kubectl-memwatch'
const ARCHIVE = `${BIN}-v${version}.tar.gz`

/** @returns {Buffer} the archive that Krew downloads from the GitHub release */
const krewArchive = () =>
  tarGz([
    { name: BIN, mode: 0o755, file: `contrib/krew/${BIN}` },
    { name: 'LICENSE', mode: 0o644, file: 'LICENSE' }
  ].map(({ file, ...entry }) => ({ ...entry, content: fs.readFileSync(path.join(ROOT, file)) })))

/** @returns {string} plugin manifest, for plugins/ of kubernetes-sigs/krew-index */
const krewManifest = () =>
  stringify(
    {
      apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
      kind: 'Plugin',
      metadata: { name: 'memwatch' },
      spec: {
        version: `v${version}`,
        homepage: REPOSITORY,
        shortDescription: 'Diagnose the memory of Node.js pods',
        description:
          'Runs a memwatch command in the memwatch sidecar of a pod: which memory problem its\n' +
          'Node.js app has, why the app died, and the patch that fixes it.\n',
        caveats:
          'The pod needs the memwatch sidecar. The Helm chart injects it:\n' +
          `${REPOSITORY}/tree/main/deploy\n`,
        platforms: [
          {
            selector: {
              matchExpressions: [{ key: 'os', operator: 'In', values: ['darwin', 'linux'] }]
            },
            uri: `${REPOSITORY}/releases/download/v${version}/${ARCHIVE}`,
            sha256: crypto.createHash('sha256').update(krewArchive()).digest('hex'),
            bin: BIN,
            files: [
              { from: BIN, to: '.' },
              { from: 'LICENSE', to: '.' }
            ]
          }
        ]
      }
    },
    { lineWidth: 0 }
  )

module.exports = { ARCHIVE, krewArchive, krewManifest }
