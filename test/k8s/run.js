'use strict'

/**
 * `npm run test:k8s` tests memwatch in a real Kubernetes 1.36 (API server, controller manager,
 * scheduler, etcd, containerd, kubelet). Helm installs the chart, its policy injects pods, and apps
 * are diagnosed, killed and upgraded. All of it runs in namespaces of its own (processes, mounts,
 * network) and disappears with them.
 *
 *   npm run test:k8s builds what it needs once, some ten minutes; then about as long
 *   npm run test:k8s -- --only upgrade    scenarios whose file or sentence has that
 *   npm run test:k8s -- --keep leaves the cluster up until Ctrl-C, and says how to reach it
 */

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { parseArgs } = require('node:util')
const { setUpTools, whatIsMissing, say } = require('./tools')
const { findImageTools, IMAGE_MISSING } = require('../../scripts/system-tools')

const CGROUPS = '/sys/fs/cgroup'
const GONE_MS = 20_000

const { values: given } = parseArgs({
  options: { keep: { type: 'boolean', default: false }, only: { type: 'string' } }
})

/**
 * Creates the mount points used inside, which must exist as folders outside.
 * @returns {string[]} created folders
 */
const makeMountPoints = () =>
  ['/var/lib/cni']
    .filter(folder => !fs.existsSync(folder))
    .map(folder => {
      fs.mkdirSync(folder)
      return folder
    })

/**
 * All cgroup hierarchies in which the kubelet has pods.
 * @param {string} name
 * @returns {string[]}
 */
function cgroupsOf (name) {
  const one = fs.existsSync(path.join(CGROUPS, 'cgroup.controllers'))
  return one
    ? [path.join(CGROUPS, name)]
    : fs
      .readdirSync(CGROUPS, { withFileTypes: true })
      .filter(entry => entry.isDirectory())
      .map(entry => path.join(CGROUPS, entry.name, name))
}

/** @param {string} folder a cgroup, which only rmdir removes: its files cannot be deleted */
function removeCgroup (folder) {
  if (!fs.existsSync(folder)) return
  for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) removeCgroup(path.join(folder, entry.name))
  }
  fs.rmdirSync(folder)
}

/**
 * Repeats attempts, because ended processes leave a cgroup with a delay.
 * @param {() => void} work
 */
async function insist (work) {
  for (const deadline = Date.now() + GONE_MS; ;) {
    try {
      return work()
    } catch (error) {
      if (Date.now() > deadline) throw error
      await new Promise(resolve => setTimeout(resolve, 200))
    }
  }
}

async function main () {
  const missing = whatIsMissing() ?? (findImageTools() ? undefined : IMAGE_MISSING)
  if (missing) {
    say(`SKIPPED: ${missing}`)
    process.exitCode = process.env.CI ? 1 : 0
    return
  }
  const began = Date.now()
  const tools = setUpTools()
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-k8s-'))
  const cgroupRoot = path.basename(folder)
  const results = path.join(folder, 'results.ndjson')
  /** @type {string[]} */
  let mountPoints = []
  /** @type {import('node:child_process').ChildProcess | undefined} */
  let inside
  const stop = () => { inside?.kill('SIGKILL') }
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) process.on(signal, stop)
  try {
    say('building the images')
    const { saveImages } = require('./images')
    const archive = path.join(folder, 'images.tar')
    await saveImages(archive)
    mountPoints = makeMountPoints()
    for (const group of cgroupsOf(cgroupRoot)) fs.mkdirSync(group, { recursive: true })
    const place = {
      folder,
      cgroupRoot,
      tools,
      images: [archive],
      results,
      keep: given.keep,
      jestArgs: ['--passWithNoTests', ...(given.only ? ['--testNamePattern', given.only] : [])]
    }
    // The process inside gets a session of its own, so that Ctrl-C reaches only this process. This
    // process then ends the one inside.
    inside = spawn(
      'unshare',
      [
        '--mount',
        '--pid',
        '--net',
        '--fork',
        '--kill-child',
        '--mount-proc',
        process.execPath,
        path.join(__dirname, 'inside.js'),
        JSON.stringify(place)
      ],
      { detached: true, stdio: ['pipe', 'inherit', 'inherit', 'ipc'] }
    )
    inside.on('message', () => sayHowToReach(folder, tools, /** @type {number} */ (inside?.pid)))
    const [code] = await once(inside, 'exit')
    process.exitCode = code ?? 1
    report(results)
    say(`${Math.round((Date.now() - began) / 1000)} s in all`)
  } finally {
    stop()
    for (const group of cgroupsOf(cgroupRoot)) await insist(() => removeCgroup(group))
    if (process.env.K8S_LOGS) {
      fs.cpSync(folder, process.env.K8S_LOGS, {
        recursive: true,
        filter: source => source === folder || /\.(log|ndjson)$/.test(source)
      })
    }
    await insist(() => fs.rmSync(folder, { recursive: true, force: true }))
    for (const mountPoint of mountPoints) fs.rmdirSync(mountPoint)
  }
}

/**
 * @param {string} folder
 * @param {import('./tools').Tools} tools
 * @param {number} pid pid of unshare, whose child is the first process inside
 */
function sayHowToReach (folder, tools, pid) {
  const first = fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
  const kubectl = path.join(folder, 'kubectl')
  fs.writeFileSync(
    kubectl,
    `#!/bin/sh\nexec nsenter --target ${first} --mount --pid --net ${tools.bin}/kubectl ` +
      `--kubeconfig ${folder}/kubeconfig "$@"\n`,
    { mode: 0o755 }
  )
  say(
    `kept. KUBECONFIG=${folder}/kubeconfig, in the namespaces of process ${first}: ${kubectl} ` +
      'get pods -A. Ctrl-C ends it.'
  )
}

/** Figures that scenarios recorded. @param {string} results */
function report (results) {
  if (!fs.existsSync(results)) return
  console.log('\nFigures')
  for (const line of fs.readFileSync(results, 'utf8').trim().split('\n')) {
    const { what, value } = JSON.parse(line)
    console.log(`  ${what.padEnd(78)} ${value}`)
  }
}

main()
