'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { containerStore, inFolder } = require('../support/containers')
const { baseImage, productImage, BASE } = require('../support/images')
const { version } = require('../../exporter/package.json')
const { PAUSE } = require('./configs')

const ROOT = path.join(__dirname, '../..')
const REPOSITORY = 'ghcr.io/memwatch/memwatch'
const NEXT_VERSION = version.replace(/\d+$/, patch => String(Number(patch) + 1))
const APP = 'localhost/lab:test'

/** The lab on the plain base image, without any part of memwatch. */
const APP_FILE = `FROM ${BASE}
COPY lab /app
WORKDIR /app
USER 1000:1000
CMD ["node", "apps/semi-space-starvation.js"]
`
/** The pause container, with which the kubelet starts each pod. */
const PAUSE_FILE = `FROM ${BASE}
ENTRYPOINT ["sleep"]
CMD ["infinity"]
`
/** The same product with the version of the next release. */
const NEXT_FILE = `FROM ${REPOSITORY}:${version}
USER 0
RUN sed -i 's/"version": "${version}"/"version": "${NEXT_VERSION}"/' /opt/memwatch/agent/package.json /opt/memwatch/exporter/package.json
USER 65532:65532
`

/**
 * All images that the cluster needs, in one archive.
 * @param {string} archive path of the archive
 */
async function saveImages (archive) {
  const store = containerStore()
  await baseImage(store)
  await productImage(store, { tag: `${REPOSITORY}:${version}` })
  for (const [tag, file] of [
    [APP, APP_FILE],
    [PAUSE, PAUSE_FILE],
    [`${REPOSITORY}:${NEXT_VERSION}`, NEXT_FILE]
  ]) {
    await inFolder(async folder => {
      fs.writeFileSync(path.join(folder, 'Containerfile'), file)
      if (tag === APP) {
        fs.cpSync(path.join(ROOT, 'lab'), path.join(folder, 'lab'), { recursive: true })
      }
      await store.buildah(
        'bud',
        '--isolation',
        'chroot',
        '--format',
        'docker',
        '--pull-never',
        '--tag',
        tag,
        folder
      )
    })
  }
  await store.podman(
    'save',
    '--quiet',
    '--multi-image-archive',
    '--output',
    archive,
    `${REPOSITORY}:${version}`,
    `${REPOSITORY}:${NEXT_VERSION}`,
    APP,
    PAUSE,
    BASE
  )
  // Removes images of earlier runs, whose names now belong to the new images.
  await store.tryPodman('image', 'prune', '--force')
}

module.exports = { saveImages, REPOSITORY, NEXT_VERSION, APP }
