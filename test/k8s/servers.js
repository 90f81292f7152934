'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { spawn, execFileSync } = require('node:child_process')
const configs = require('./configs')

/**
 * The kubelet writes these settings: files of the test are mounted over them, so that the machine's
 * settings do not change.
 */
const SETTINGS = { 'vm/overcommit_memory': '1', 'kernel/panic': '10', 'kernel/panic_on_oops': '1' }
const READY_MS = 90_000

/**
 * Starts a server with its output in a file of its name.
 * @param {string} folder
 * @param {string} file
 * @param {string[]} args
 * @param {NodeJS.ProcessEnv} [env]
 */
function start (folder, file, args, env = process.env) {
  const log = fs.openSync(path.join(folder, `${path.basename(file)}.log`), 'a')
  const child = spawn(file, args, { cwd: folder, stdio: ['ignore', log, log], env })
  fs.closeSync(log)
  child.on('exit', (code, signal) =>
    fs.appendFileSync(path.join(folder, 'ended.log'), `${file} ended with ${signal ?? code}\n`)
  )
  return child
}

/**
 * @param {string} what
 * @param {() => Promise<boolean> | boolean} is
 * @param {string} folder with the logs
 * @throws {Error} if the condition does not hold in time, or a server ended
 */
async function until (what, is, folder) {
  for (const deadline = Date.now() + READY_MS; !await is();) {
    const ended = path.join(folder, 'ended.log')
    if (fs.existsSync(ended)) throw new Error(`${what}: ${fs.readFileSync(ended, 'utf8')}`)
    if (Date.now() > deadline) {
      throw new Error(`${what}: not in ${READY_MS / 1000} s; the logs are in ${folder}`)
    }
    await new Promise(resolve => setTimeout(resolve, 200))
  }
}

/**
 * Mounts folders for kubelet and containerd over the machine's own ones. It must run in a mount
 * namespace of its own.
 * @param {string} folder
 */
function coverTheMachine (folder) {
  const run = (/** @type {string[]} */ ...args) => execFileSync(args[0], args.slice(1))
  run('mount', '--make-rshared', '/')
  for (const place of ['/run', '/var/log', '/var/lib/cni']) {
    run('mount', '-t', 'tmpfs', '-o', 'mode=755', 'tmpfs', place)
  }
  for (const [name, value] of Object.entries(SETTINGS)) {
    const file = path.join(folder, name.replace('/', '-'))
    fs.writeFileSync(file, `${value}\n`)
    run('mount', '--bind', file, `/proc/sys/${name}`)
  }
  run('ip', 'link', 'set', 'lo', 'up')
  // A node needs an address outside loopback, and a default route.
  run('ip', 'link', 'add', 'node', 'type', 'bridge')
  run('ip', 'address', 'add', `${configs.NODE_ADDRESS}/24`, 'dev', 'node')
  run('ip', 'link', 'set', 'node', 'up')
  run('ip', 'route', 'add', 'default', 'dev', 'node')
}

/**
 * Starts a control plane and a node of Kubernetes, until both are Ready.
 * @param {configs.Place & { images: string[] }} place images: archives of images to load
 * @param {(text: string) => void} say
 */
async function startCluster (place, say) {
  const { folder, tools } = place
  const at = (/** @type {string} */ name) => path.join(folder, name)
  const bin = (/** @type {string} */ name) => path.join(tools.bin, name)
  const kubectl = (/** @type {string[]} */ ...args) => {
    try {
      return execFileSync(bin('kubectl'), ['--kubeconfig', at('kubeconfig'), ...args], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'pipe']
      })
    } catch {
      return ''
    }
  }
  coverTheMachine(folder)
  fs.mkdirSync('/run/etcd')
  for (const name of ['pki', 'cni', 'kubelet']) fs.mkdirSync(at(name))
  execFileSync('openssl', ['genrsa', '-out', at('pki/sa.key'), '2048'], { stdio: 'ignore' })
  execFileSync('openssl', ['rsa', '-in', at('pki/sa.key'), '-pubout', '-out', at('pki/sa.pub')], {
    stdio: 'ignore'
  })
  fs.writeFileSync(at('pki/tokens.csv'), 'admin,admin,admin,"system:masters"\n')
  fs.writeFileSync(at('kubeconfig'), JSON.stringify(configs.kubeconfig()), { mode: 0o600 })
  fs.writeFileSync(at('resolv.conf'), 'nameserver 127.0.0.1\n')
  fs.writeFileSync(at('cni/10-pods.conflist'), JSON.stringify(configs.cni(place)))
  fs.writeFileSync(at('containerd.toml'), configs.containerd(place))
  fs.writeFileSync(at('kubelet.yaml'), JSON.stringify(configs.kubelet(place)))

  // etcd stores its data in memory, because the data is deleted with the cluster anyway.
  start(folder, path.join(tools.debian, 'usr/bin/etcd'), ['--data-dir', '/run/etcd'])
  start(
    folder,
    path.join(tools.debian, 'usr/bin/containerd'),
    ['--config', at('containerd.toml')],
    { ...process.env, PATH: `${tools.debian}/usr/bin:${process.env.PATH}` }
  )
  start(folder, bin('kube-apiserver'), [
    '--etcd-servers=http://127.0.0.1:2379',
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    '--secure-port=6443',
    `--cert-dir=${at('pki')}`,
    `--service-account-key-file=${at('pki/sa.pub')}`,
    `--service-account-signing-key-file=${at('pki/sa.key')}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--token-auth-file=${at('pki/tokens.csv')}`,
    '--authorization-mode=Node,RBAC',
    '--service-cluster-ip-range=10.96.0.0/16',
    '--allow-privileged=true',
    '--endpoint-reconciler-type=none'
  ])
  const ctr = (/** @type {string[]} */ ...args) => execFileSync(path.join(tools.debian, 'usr/bin/ctr'), ['--address', configs.CONTAINERD_SOCKET, '--namespace', 'k8s.io', ...args], { stdio: ['ignore', 'ignore', 'pipe'], env: process.env })
  await until(
    'containerd',
    () => {
      try {
        ctr('version')
        return true
      } catch {
        return false
      }
    },
    folder
  )
  for (const archive of place.images) ctr('images', 'import', archive)
  say('images are loaded')
  await until('the API server', () => kubectl('get', '--raw=/readyz') === 'ok', folder)
  say('the API server is ready')
  start(folder, bin('kube-controller-manager'), [
    `--kubeconfig=${at('kubeconfig')}`,
    `--service-account-private-key-file=${at('pki/sa.key')}`,
    `--root-ca-file=${at('pki/apiserver.crt')}`,
    '--leader-elect=false',
    '--bind-address=127.0.0.1',
    `--cert-dir=${at('pki')}`
  ])
  start(folder, bin('kube-scheduler'), [
    `--kubeconfig=${at('kubeconfig')}`,
    '--leader-elect=false',
    '--bind-address=127.0.0.1',
    `--cert-dir=${at('pki')}`
  ])
  start(folder, bin('kubelet'), [
    `--config=${at('kubelet.yaml')}`,
    `--kubeconfig=${at('kubeconfig')}`,
    `--root-dir=${at('kubelet')}`,
    `--cert-dir=${at('pki')}`,
    '--hostname-override=localhost',
    `--node-ip=${configs.NODE_ADDRESS}`,
    '--v=2'
  ])
  await until(
    'the node',
    () =>
      /True/.test(
        kubectl(
          'get',
          'node',
          'localhost',
          '-o',
          'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
        )
      ),
    folder
  )
  await until(
    'the first service account',
    () => kubectl('get', 'serviceaccount', 'default', '-o', 'name') !== '',
    folder
  )
  say('the node is ready')
}

module.exports = { startCluster }
