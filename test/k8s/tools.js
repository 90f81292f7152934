'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { spawnSync } = require('node:child_process')
const { buildGoTools, findGoTools, GO_MISSING } = require('../../scripts/go-tools')
const { toolsFolder } = require('../../scripts/tools-folder')

const KUBERNETES_VERSION = '1.36.3'
const KUBERNETES = [
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kubectl',
  'kubelet'
]
const OPERATOR = {
  module: 'github.com/prometheus-operator/prometheus-operator',
  version: 'v0.85.0',
  crds: ['podmonitors', 'servicemonitors', 'prometheusrules']
}
/** Debian packages, which are only unpacked: the machine's own daemons stay as they are. */
const DEBIAN = ['etcd-server', 'containerd', 'containernetworking-plugins']
/**
 * Time limit of a build. Without a build cache, the API server alone takes five minutes on two
 * cores.
 */
const LONGEST_BUILD_MS = 30 * 60_000

/**
 * @typedef {object} Tools
 * @property {string} bin folder with the binaries of Kubernetes
 * @property {string} debian folder with the unpacked Debian packages
 * @property {string} helm
 * @property {string} crds folder with the CustomResourceDefinitions of the Prometheus operator
 */

/** @param {string} text */
const say = text => process.stderr.write(`test:k8s: ${text}\n`)

/**
 * @param {string} file
 * @param {string[]} args
 * @param {import('node:child_process').SpawnSyncOptions} [options]
 * @throws {Error} error with the output of the program
 */
function must (file, args, options = {}) {
  const { status, stderr, error } = spawnSync(file, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: LONGEST_BUILD_MS,
    ...options
  })
  if (status !== 0) {
    throw new Error(`${file} ${args.join(' ')}: ${error?.message ?? String(stderr).slice(-2000)}`)
  }
}

/**
 * Programs that the build needs.
 * @returns {string | undefined} sentence about missing programs
 */
function whatIsMissing () {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'it needs root on Linux'
  const missing = [
    'go',
    'apt-get',
    'dpkg',
    'unshare',
    'nsenter',
    'ip',
    'openssl',
    'iptables'
  ].filter(name => spawnSync('sh', ['-c', `command -v ${name}`]).status !== 0)
  return missing.length > 0 ? `${missing.join(', ')} is not here` : undefined
}

/**
 * Builds or unpacks a folder, unless it exists. An interrupted build leaves no folder that looks
 * complete.
 * @param {string} at
 * @param {string} what
 * @param {(to: string) => void} make
 */
function once (at, what, make) {
  if (fs.existsSync(at)) return
  const began = Date.now()
  say(`${what} …`)
  fs.mkdirSync(path.dirname(at), { recursive: true })
  const to = `${at}.part`
  fs.rmSync(to, { recursive: true, force: true })
  make(to)
  fs.renameSync(to, at)
  say(`${what}: ${Math.round((Date.now() - began) / 1000)} s`)
}

/** @returns {Tools} */
function setUpTools () {
  const folder = toolsFolder()
  const bin = path.join(folder, `kubernetes-${KUBERNETES_VERSION}`)
  const env = { ...process.env, GOTOOLCHAIN: 'local', CGO_ENABLED: '0', GOFLAGS: '-mod=readonly' }
  for (const name of KUBERNETES) {
    once(path.join(bin, name), `building ${name} ${KUBERNETES_VERSION}`, to =>
      must(
        'go',
        [
          'build',
          '-trimpath',
          '-ldflags',
          `-s -w -X k8s.io/component-base/version.gitVersion=v${KUBERNETES_VERSION}`,
          '-o',
          to,
          `k8s.io/kubernetes/cmd/${name}`
        ],
        { cwd: path.join(__dirname, 'kubernetes'), env }
      )
    )
  }
  buildGoTools(say)
  const goTools = findGoTools()
  if (!goTools) throw new Error(GO_MISSING)
  const debian = path.join(folder, 'debian')
  once(debian, DEBIAN.join(', '), to => {
    fs.mkdirSync(to, { recursive: true })
    must('apt-get', ['download', '-o', 'APT::Sandbox::User=root', ...DEBIAN], { cwd: to })
    for (const name of fs.readdirSync(to).filter(name => name.endsWith('.deb'))) {
      must('dpkg', ['-x', name, '.'], { cwd: to })
      fs.rmSync(path.join(to, name))
    }
  })
  const crds = path.join(folder, `prometheus-operator-crds-${OPERATOR.version}`)
  once(crds, "Prometheus operator's CRDs", to => {
    const { stdout } = spawnSync(
      'go',
      ['mod', 'download', '-json', `${OPERATOR.module}@${OPERATOR.version}`],
      { encoding: 'utf8', env: { ...env, GOFLAGS: '-mod=mod' }, cwd: folder }
    )
    const from = path.join(JSON.parse(stdout).Dir, 'example/prometheus-operator-crd')
    fs.mkdirSync(to)
    for (const name of OPERATOR.crds) {
      fs.copyFileSync(
        path.join(from, `monitoring.coreos.com_${name}.yaml`),
        path.join(to, `${name}.yaml`)
      )
    }
  })
  return { bin, debian, crds, helm: goTools.helm }
}

module.exports = { setUpTools, whatIsMissing, say, KUBERNETES_VERSION }
