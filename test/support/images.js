'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { promisify } = require('node:util')
const { inFolder } = require('./containers')

const execFile = promisify(require('node:child_process').execFile)

const ROOT = path.join(__dirname, '../..')
const NODE_VERSION = '24.21.0'
const NPM_VERSION = '11.19.1'
/** Version of the build steps below: a new number leads to a new image. */
const RECIPE = '1'
const BASE = 'docker.io/library/node:24-bookworm-slim'
const LABEL = 'memwatch.test.recipe'
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt'
/** Packages missing in the slim images of Debian. */
const LEFT_OUT = ['man', 'doc', 'locale', 'info'].map(
  name => `--dpkgopt=path-exclude=/usr/share/${name}/*`
)

const CONTAINERFILE = `FROM scratch
ADD rootfs.tar /
COPY node /usr/local/
COPY npm /usr/local/lib/node_modules/npm
COPY docker-entrypoint.sh /usr/local/bin/
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm \\
 && ln -s ../lib/node_modules/npm/bin/npx-cli.js /usr/local/bin/npx \\
 && groupadd --gid 1000 node && useradd --uid 1000 --gid node --shell /bin/bash --create-home node
LABEL ${LABEL}=${RECIPE}-${NODE_VERSION}-${NPM_VERSION}
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["node"]
`

/**
 * A substitute for the official Node.js image, under its name, built without an image registry:
 * Debian 12 by mmdebstrap, with Node.js and npm from npm's registry. It is built once and stays in
 * the store.
 * @param {import('./containers').ContainerStore} store
 * @returns {Promise<string>} its name
 */
async function baseImage (store) {
  if (
    (await store.has(BASE)) &&
    (await store.inspect(BASE)).Labels?.[LABEL] === `${RECIPE}-${NODE_VERSION}-${NPM_VERSION}`
  ) { return BASE }
  await inFolder(async folder => {
    const at = (/** @type {string} */ name) => path.join(folder, name)
    const unpacked = async (/** @type {string} */ name, /** @type {string} */ to) => {
      const { stdout } = await execFile(
        'npm',
        ['pack', '--silent', '--pack-destination', folder, name],
        { cwd: folder }
      )
      fs.mkdirSync(at(to))
      await execFile('tar', ['-xzf', at(/** @type {string} */ (stdout.trim().split('\n').pop())), '--strip-components=1', '-C', at(to)])
    }
    await Promise.all([
      execFile('mmdebstrap', [
        '--quiet',
        '--variant=minbase',
        '--dpkgopt=force-unsafe-io',
        ...LEFT_OUT,
        'bookworm',
        at('rootfs.tar'),
        'http://deb.debian.org/debian'
      ]),
      unpacked(`node-linux-${process.arch}@${NODE_VERSION}`, 'node').then(() =>
        unpacked(`npm@${NPM_VERSION}`, 'npm')
      )
    ])
    fs.writeFileSync(at('docker-entrypoint.sh'), '#!/bin/sh\nexec "$@"\n', { mode: 0o755 })
    fs.writeFileSync(at('Containerfile'), CONTAINERFILE)
    await store.buildah(
      'bud',
      '--isolation',
      'chroot',
      '--format',
      'docker',
      '--file',
      at('Containerfile'),
      '--tag',
      BASE,
      folder
    )
  })
  return BASE
}

/**
 * Builds the image of the Dockerfile. The build uses this machine's certificates for npm's
 * registry.
 * @param {import('./containers').ContainerStore} store
 * @param {{ tag: string, context?: string, buildArgs?: Record<string, string> }} options context:
 *   the folder with the Dockerfile
 * @returns {Promise<string>} output of the build
 */
async function productImage (store, { tag, context = ROOT, buildArgs = {} }) {
  await baseImage(store)
  return inFolder(async folder => {
    const npmrc = path.join(folder, 'npmrc')
    fs.writeFileSync(npmrc, `cafile=${CERTIFICATES}\nupdate-notifier=false\n`)
    const given = Object.entries({ NODE_IMAGE: BASE, ...buildArgs }).flatMap(([name, value]) => [
      '--build-arg',
      `${name}=${value}`
    ])
    const mounts = fs.existsSync(CERTIFICATES)
      ? [
          '--volume',
          '/etc/ssl/certs:/etc/ssl/certs:ro',
          '--volume',
          `${npmrc}:/usr/local/etc/npmrc:ro`
        ]
      : []
    return store.buildah(
      'bud',
      '--isolation',
      'chroot',
      '--format',
      'docker',
      '--pull-never',
      ...mounts,
      ...given,
      '--tag',
      tag,
      context
    )
  })
}

module.exports = { baseImage, productImage, BASE, NODE_VERSION }
