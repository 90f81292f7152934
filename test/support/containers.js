'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { spawnSync } = require('node:child_process')
const { execFile, spawn } = require('node:child_process')
const { toolsFolder } = require('../../scripts/tools-folder')

/**
 * runc, because crun refuses machines with both cgroup versions. Without systemd podman itself must
 * manage cgroups and events. The tests need no network.
 */
const CONTAINERS_CONF = `[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
netns = "none"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
`
const LONGEST_MS = 300_000

/**
 * Images and containers of the tests, in a store of their own that stays between runs.
 * @param {string} [folder]
 */
function containerStore (folder = path.join(toolsFolder(), 'containers')) {
  fs.mkdirSync(folder, { recursive: true })
  const conf = path.join(folder, 'containers.conf')
  fs.writeFileSync(conf, CONTAINERS_CONF)
  const env = { ...process.env, CONTAINERS_CONF: conf, NODE_OPTIONS: '' }
  const place = [
    '--root',
    path.join(folder, 'root'),
    '--runroot',
    path.join(folder, 'run'),
    '--storage-driver',
    driverFor(folder, env)
  ]
  /**
   * @param {string} file
   * @param {string[]} args
   * @returns {Promise<{ code: number, stdout: string, stderr: string }>}
   */
  const call = (file, args) => new Promise(resolve => {
    execFile(
      file,
      args,
      { env, timeout: LONGEST_MS, maxBuffer: 64 * 2 ** 20 },
      (error, stdout, stderr) =>
        resolve({ code: error ? Number(error.code) || 1 : 0, stdout, stderr })
    )
  })
  /**
   * @param {string} file
   * @param {string[]} args
   * @returns {Promise<string>} stdout
   * @throws {Error} with all it said
   */
  const must = async (file, args) => {
    const { code, stdout, stderr } = await call(file, args)
    if (code !== 0) {
      throw new Error(
        `${file} ${args.join(' ')} ended with ${code}:\n${stdout}\n${stderr}`.slice(-8000)
      )
    }
    return stdout.trim()
  }
  const podmanArgs = (/** @type {string[]} */ args) => [...place, '--tmpdir', path.join(folder, 'tmp'), '--log-level', 'fatal', ...args]
  return {
    folder,
    buildah: (/** @type {string[]} */ ...args) => must('buildah', [...place, ...args]),
    podman: (/** @type {string[]} */ ...args) => must('podman', podmanArgs(args)),
    tryPodman: (/** @type {string[]} */ ...args) => call('podman', podmanArgs(args)),
    spawnPodman: (/** @type {string[]} */ ...args) =>
      spawn('podman', podmanArgs(args), { env, stdio: ['ignore', 'pipe', 'pipe'] }),
    /**
     * @param {string} image
     * @returns {Promise<boolean>}
     */
    has: async image =>
      (await call('buildah', [...place, 'inspect', '--type', 'image', image])).code === 0,
    /**
     * @param {string} image
     * @returns {Promise<any>} its configuration by podman
     */
    inspect: async image =>
      JSON.parse(await must('podman', podmanArgs(['image', 'inspect', image])))[0]
  }
}

/**
 * Storage driver: overlay if the kernel supports it on the file system of this folder, and
 * otherwise vfs, which copies files. The kernel supports no overlay on top of another one.
 * @param {string} folder
 * @param {NodeJS.ProcessEnv} env
 */
function driverFor (folder, env) {
  const place = fs.mkdtempSync(path.join(folder, 'try-'))
  try {
    const { status } = spawnSync(
      'buildah',
      [
        '--root',
        path.join(place, 'root'),
        '--runroot',
        path.join(place, 'run'),
        '--storage-driver',
        'overlay',
        'info'
      ],
      { env }
    )
    return status === 0 ? 'overlay' : 'vfs'
  } finally {
    spawnSync('umount', ['-q', path.join(place, 'root/overlay')])
    fs.rmSync(place, { recursive: true, force: true })
  }
}

/** @typedef {ReturnType<typeof containerStore>} ContainerStore */

/**
 * @template T
 * @param {(folder: string) => Promise<T>} use
 */
async function inFolder (use) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-image-'))
  try {
    return await use(folder)
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

module.exports = { containerStore, inFolder }
