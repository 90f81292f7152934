'use strict'

/**
 * cgroup v2 of a real kernel: Debian's kernel in a virtual machine, with a root folder of Node.js,
 * the packages and busybox. QEMU emulates the processor, as nested virtualization is rarely
 * available and results would differ between machines.
 */

const fs = require('node:fs')
const path = require('node:path')
const { spawn, spawnSync } = require('node:child_process')
const { once } = require('node:events')
const { createInterface } = require('node:readline')
const { fetchNode } = require('../../scripts/fetch-node')
const { installPackages } = require('../../scripts/setup-tools')
const { CASES } = require('./cgroup2-cases')
const { fetchDebian, fetchMusl, must, whyNotFetched } = require('./fetched')
const { ROOT } = require('./glibc')

/** Node.js 24 runs apps and the command line; Node.js 18 runs further apps. */
const NODES = { 18: '18.20.8', 24: '24.21.0' }
/** Time limit for an emulator on a busy machine. */
const LONGEST_MS = 45 * 60_000
const MEMORY_MB = 3000
/** Files of the repository for the virtual machine. */
const PARTS = [
  'agent', 'allocator', 'cli', 'engine', 'exporter', 'lab', 'mcp', 'otlp', 'test/support',
  'test/platforms', 'bench/deaths.js', 'bench/dying-app.js', 'package.json'
]
const MARK = 'case: '

const INIT = `#!/bin/busybox sh
/bin/busybox --install -s /bin
# unshare is util-linux's.
export PATH=/usr/bin:/bin HOME=/root
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp; mount -t cgroup2 cgroup /sys/fs/cgroup
ip link set lo up
echo 1 > /proc/sys/kernel/printk
cd /work
/opt/24/node test/platforms/cgroup2-inside.js
sync
poweroff -f
`

/**
 * Copies a program with the libraries that it loads.
 * @param {string} root
 * @param {string} file
 * @param {string} [to] path in the root folder
 */
function addProgram (root, file, to = file) {
  const libraries = must('ldd', [file]).matchAll(/(\/\S+) \(0x/g)
  const copies = [[file, to], ...Array.from(libraries, ([, library]) => [library, library])]
  for (const [from, at] of copies) {
    fs.mkdirSync(path.dirname(path.join(root, at)), { recursive: true })
    fs.copyFileSync(fs.realpathSync(from), path.join(root, at))
  }
}

/** Packages of production. @param {string} root */
function addPackages (root) {
  const lock = JSON.parse(fs.readFileSync(path.join(ROOT, 'package-lock.json'), 'utf8'))
  for (const [name, { dev, devOptional, link }] of Object.entries(lock.packages)) {
    const from = path.join(ROOT, name)
    if (!name.startsWith('node_modules/') || dev || devOptional || link || !fs.existsSync(from)) {
      continue
    }
    fs.cpSync(from, path.join(root, 'work', name), { recursive: true })
  }
  const scope = path.join(root, 'work/node_modules/@memwatch')
  fs.mkdirSync(scope, { recursive: true })
  for (const name of ['agent', 'allocator', 'cli', 'engine', 'exporter', 'lab', 'mcp', 'otlp']) {
    fs.symlinkSync(`../../${name}`, path.join(scope, name))
  }
  fs.symlinkSync('../agent', path.join(root, 'work/node_modules/memwatch'))
}

/**
 * @param {string} folder
 * @returns {string} archive of the root folder; uncompressed, because an emulator decompresses
 *   slowly
 */
function packRoot (folder) {
  const root = path.join(folder, 'root')
  for (const name of ['bin', 'proc', 'sys', 'dev', 'tmp', 'root', 'work']) {
    fs.mkdirSync(path.join(root, name), { recursive: true })
  }
  fs.copyFileSync(path.join(fetchMusl(), 'bin/busybox'), path.join(root, 'bin/busybox'))
  fs.symlinkSync('busybox', path.join(root, 'bin/sh'))
  for (const [major, version] of Object.entries(NODES)) {
    addProgram(root, fetchNode(version), `/opt/${major}/node`)
  }
  addProgram(root, '/usr/bin/unshare')
  for (const name of PARTS) {
    fs.cpSync(path.join(ROOT, name), path.join(root, 'work', name), { recursive: true })
  }
  addPackages(root)
  fs.writeFileSync(path.join(root, 'init'), INIT, { mode: 0o755 })
  const packed = path.join(folder, 'root.cpio')
  const busybox = path.join(root, 'bin/busybox')
  must('sh', ['-c', 'find . | "$0" cpio -o -H newc > "$1"', busybox, packed], { cwd: root })
  fs.rmSync(root, { recursive: true })
  return packed
}

/** @returns {string} path of Debian's kernel for virtual machines */
function fetchKernel () {
  const folder = fetchDebian('bookworm', 'kernel', show => {
    const newest = /linux-image-[\d.]+-\d+-cloud-amd64/.exec(show('linux-image-cloud-amd64'))
    if (!newest) throw new Error('linux-image-cloud-amd64 names no kernel')
    return [newest[0]]
  })
  const images = path.join(folder, 'boot')
  const [name] = fs.readdirSync(images).filter(name => name.startsWith('vmlinuz'))
  return path.join(images, name)
}

/**
 * Boots the machine, and reads the output of the cases.
 * @param {string} folder
 * @returns {{ results: Map<string, any>, ended: Promise<string> }} results by title and version;
 *   ended: resolves to the whole output of the machine
 */
function boot (folder) {
  const machine = spawn('qemu-system-x86_64', [
    '-machine', 'q35', '-accel', 'tcg,thread=multi', '-cpu', 'max', '-smp', '2',
    '-m', String(MEMORY_MB), '-kernel', fetchKernel(), '-initrd', packRoot(folder),
    '-append', 'console=ttyS0 quiet psi=1 panic=-1', '-nographic', '-no-reboot', '-nic', 'none'
  ], { stdio: ['ignore', 'pipe', 'inherit'] })
  const kill = () => machine.kill('SIGKILL')
  process.once('exit', kill)
  const timer = setTimeout(kill, LONGEST_MS)
  const results = new Map()
  let said = ''
  createInterface({ input: machine.stdout }).on('line', line => {
    const at = line.indexOf(MARK)
    if (at < 0) said += `${line}\n`
    else {
      const result = JSON.parse(line.slice(at + MARK.length))
      results.set(`${result.title} ${result.node}`, result)
      const state = result.error ? `failed: ${result.error}` : 'passed'
      console.log(`  … ${result.title} (${result.node}): ${state}`)
    }
  })
  const ended = once(machine, 'close').then(() => {
    clearTimeout(timer)
    process.removeListener('exit', kill)
    return said
  })
  return { results, ended }
}

/** @type {import('./run').Platform} */
const cgroup2 = {
  title: 'cgroup v2 (virtual machine)',
  missing () {
    if (process.platform !== 'linux' || process.arch !== 'x64') return 'it needs Linux on x64'
    const missing = whyNotFetched()
    if (missing) return missing
    const find = () => spawnSync('qemu-system-x86_64', ['--version']).status === 0
    if (!find()) installPackages(['qemu-system-x86'])
    return find() ? undefined : 'qemu-system-x86_64 is not here (apt-get install qemu-system-x86)'
  },
  nodes: Object.values(NODES),
  lanes: CASES.length,
  cases (folder) {
    const { results, ended } = boot(folder)
    return CASES.map(({ title, major }) => ({
      title,
      node: NODES[major],
      async test () {
        const said = await ended
        const result = results.get(`${title} ${major}`)
        if (!result) throw new Error(`the machine did not come so far: ${said.slice(-600)}`)
        if (result.error) throw new Error(result.error)
        return result.known
      }
    }))
  }
}

module.exports = { cgroup2 }
