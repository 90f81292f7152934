'use strict'

const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { createMemoryGroup } = require('../../exporter/process/memory-group')
const { describeInGroup } = require('../support/memory-groups')

const MB = 2 ** 20
const EAT = 'const held = []; for (;;) held.push(Buffer.alloc(8 << 20, 1))'
const module_ = path.resolve(__dirname, '../../exporter/process/memory-group.js')

/** @type {import('../../exporter/process/memory-group').MemoryGroup[]} */
const made = []
/** @type {string[]} */
const folders = []

/** @param {Parameters<typeof createMemoryGroup>[0]} options */
function create (options) {
  const group = createMemoryGroup(options)
  made.push(group)
  return group
}

afterEach(async () => {
  for (const group of made.splice(0)) await group.remove()
  for (const folder of folders.splice(0)) fs.rmSync(folder, { recursive: true })
})

const here = createMemoryGroup({ limitBytes: 64 * MB })
afterAll(() => here.remove())

test('createMemoryGroup returns a real cgroup, or the reason why there is none', () => {
  expect(here.supported || (here.reason ?? '').length > 10).toBe(true)
})

describeInGroup('a real memory cgroup', () => {
  test('kills a process above its limit, and counts the kill', () => {
    const group = create({ limitBytes: 100 * MB })
    const { command, args } = group.wrap(process.execPath, ['-e', EAT])
    expect(spawnSync(command, args).signal).toBe('SIGKILL')
    const stats = group.stats()
    expect(stats?.oomKills).toBeGreaterThan(0)
    expect(stats?.limitHits).toBeGreaterThan(0)
    expect(stats?.maxUsageBytes).toBeGreaterThan(90 * MB)
  })

  test('runs a process below the limit, with its arguments and exit code', () => {
    const group = create({ limitBytes: 200 * MB, name: 'calm' })
    const { command, args } = group.wrap(process.execPath, [
      '-e',
      'console.log(process.argv[1]); process.exit(7)',
      'two words $HOME'
    ])
    const { status, stdout } = spawnSync(command, args)
    expect({ status, stdout: String(stdout) }).toEqual({ status: 7, stdout: 'two words $HOME\n' })
    expect(group.stats()).toMatchObject({ limitBytes: 200 * MB, oomKills: 0 })
  })

  test('contains the process before Node.js starts, so V8 derives the heap size from it', () => {
    const group = create({ limitBytes: 512 * MB })
    const { command, args } = group.wrap(process.execPath, ['-p', 'process.constrainedMemory()'])
    expect(Number(spawnSync(command, args).stdout)).toBe(512 * MB)
  })

  test('can be created inside another one', () => {
    const outer = create({ limitBytes: 300 * MB, name: 'outer' })
    const script = `const group = require(${JSON.stringify(module_)}).createMemoryGroup({ limitBytes: 2 ** 26, name: 'inner' })
      console.log(group.path, group.stats()?.limitBytes)
      group.remove().then(console.log)`
    const { command, args } = outer.wrap(process.execPath, ['-e', script])
    const [line, removed] = String(spawnSync(command, args).stdout).split('\n')
    const inner = line.split(' ')
    expect(inner[1]).toBe(String(2 ** 26))
    expect(path.basename(inner[0])).toMatch(/^memwatch-inner-/)
    expect(removed).toBe('true')
  })

  test('is gone after remove, and a second remove is harmless', async () => {
    const group = create({ limitBytes: 64 * MB })
    expect(fs.existsSync(group.path ?? '')).toBe(true)
    expect(await group.remove()).toBe(true)
    expect(fs.existsSync(group.path ?? '')).toBe(false)
    expect(group.stats()).toBeUndefined()
    expect(await group.remove()).toBe(true)
  })

  test('left behind by a dead run is removed by the next one', () => {
    const script = `console.log(require(${JSON.stringify(module_)}).createMemoryGroup({ ` +
      'limitBytes: 2 ** 26, name: \'left\' }).path)'
    const left = String(spawnSync(process.execPath, ['-e', script]).stdout).trim()
    expect(fs.existsSync(left)).toBe(true)
    create({ limitBytes: 64 * MB })
    expect(fs.existsSync(left)).toBe(false)
  })
})

/**
 * A machine of plain files: /proc/self and a cgroup tree.
 * @param {{ cgroup: string, mounts: string[], files?: Record<string, string> }} machine `@` is the
 *   tree's root
 */
function machine ({ cgroup, mounts, files = {} }) {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-groups-'))
  folders.push(root)
  for (const [file, text] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(root, file)), { recursive: true })
    fs.writeFileSync(path.join(root, file), text)
  }
  fs.writeFileSync(path.join(root, 'cgroup'), cgroup)
  fs.writeFileSync(
    path.join(root, 'mountinfo'),
    mounts.map(mount => mount.replace('@', root)).join('\n')
  )
  return root
}

/**
 * Refuses to write the named files, as the kernel does.
 * @param {string} file
 * @param {string} code
 */
function refusing (file, code) {
  /** @type {typeof fs.writeFileSync} */
  const writeFileSync = (target, text) => {
    if (String(target).endsWith(file)) throw Object.assign(new Error(code), { code })
    fs.writeFileSync(target, text)
  }
  return { ...fs, writeFileSync }
}

describe('the place of a new memory cgroup', () => {
  const V1 = '30 23 0:26 / @ rw - cgroup cgroup rw,memory'
  const V2 = '30 23 0:26 / @ rw - cgroup2 cgroup2 rw'

  test('v1: inside the own cgroup', () => {
    const root = machine({
      cgroup: '4:memory:/outer/own\n0::/\n',
      mounts: [V1],
      files: { 'outer/own/x': '' }
    })
    const { supported, path: made } = createMemoryGroup({ limitBytes: 1, procSelf: root })
    expect(supported).toBe(true)
    expect(path.dirname(made ?? '')).toBe(path.join(root, 'outer/own'))
    expect(fs.readFileSync(path.join(made ?? '', 'memory.limit_in_bytes'), 'utf8')).toBe('1')
  })

  test('v1 in a container: the mount point, because the path belongs to the host', () => {
    const root = machine({
      cgroup: '4:memory:/docker/abc\n',
      mounts: ['30 23 0:26 /docker/abc @ rw - cgroup cgroup rw,memory']
    })
    expect(path.dirname(createMemoryGroup({ limitBytes: 1, procSelf: root }).path ?? '')).toBe(root)
  })

  test('v2: inside the own cgroup if that delegates memory', () => {
    const root = machine({
      cgroup: '0::/own\n',
      mounts: [V2],
      files: {
        'own/cgroup.controllers': 'cpu memory\n',
        'own/cgroup.subtree_control': 'cpu memory\n'
      }
    })
    const { path: made } = createMemoryGroup({ limitBytes: 5, procSelf: root })
    expect(path.dirname(made ?? '')).toBe(path.join(root, 'own'))
    expect(fs.readFileSync(path.join(made ?? '', 'memory.max'), 'utf8')).toBe('5')
    expect(fs.readFileSync(path.join(made ?? '', 'memory.swap.max'), 'utf8')).toBe('0')
  })

  test('v2: beside the own cgroup if that has processes', () => {
    const root = machine({
      cgroup: '0::/user/own\n',
      mounts: [V2],
      files: {
        'user/cgroup.subtree_control': 'memory\n',
        'user/own/cgroup.controllers': 'memory\n',
        'user/own/cgroup.subtree_control': ''
      }
    })
    const group = createMemoryGroup({
      limitBytes: 1,
      procSelf: root,
      fs: refusing('own/cgroup.subtree_control', 'EBUSY')
    })
    expect(path.dirname(group.path ?? '')).toBe(path.join(root, 'user'))
  })

  test.each([
    [
      'a machine without control groups',
      { cgroup: '', mounts: [] },
      fs,
      'this system has no control groups (Linux only)'
    ],
    [
      'no memory controller mounted',
      { cgroup: '4:cpu:/\n', mounts: [] },
      fs,
      'the memory controller is not mounted'
    ],
    [
      'v2 without the memory controller',
      { cgroup: '0::/\n', mounts: [V2], files: { 'cgroup.controllers': 'cpu\n' } },
      fs,
      'the memory controller is not available in @'
    ],
    [
      'the group of a v2 container',
      {
        cgroup: '0::/\n',
        mounts: [V2],
        files: { 'cgroup.controllers': 'memory\n', 'cgroup.subtree_control': '' }
      },
      refusing('cgroup.subtree_control', 'EBUSY'),
      '@ has processes of its own, so cgroup v2 allows no memory cgroups inside it, and none ' +
        'beside it'
    ],
    [
      'a user who is not root',
      { cgroup: '4:memory:/\n', mounts: [V1] },
      {
        ...fs,
        mkdirSync: () => {
          throw Object.assign(new Error(), { code: 'EACCES' })
        }
      },
      'cannot create a memory cgroup in @: not allowed (needs root)'
    ],
    [
      'a container with read-only control groups',
      { cgroup: '4:memory:/\n', mounts: [V1] },
      {
        ...fs,
        mkdirSync: () => {
          throw Object.assign(new Error(), { code: 'EROFS' })
        }
      },
      'cannot create a memory cgroup in @: control groups are mounted read-only, as in an ' +
        'unprivileged container'
    ],
    [
      'a limit the kernel refuses',
      { cgroup: '4:memory:/\n', mounts: [V1] },
      refusing('memory.limit_in_bytes', 'EACCES'),
      'cannot limit the memory of a group in @: not allowed (needs root)'
    ]
  ])('nowhere, with a reason: %s', async (name, made, machineFs, reason) => {
    const root = machine(made)
    const group = createMemoryGroup({
      limitBytes: 1,
      procSelf: root,
      fs: /** @type {typeof fs} */ (machineFs)
    })
    expect(group.supported).toBe(false)
    expect(group.reason).toBe(reason.replace('@', root))
    expect(group.wrap('node', ['app.js'])).toEqual({ command: 'node', args: ['app.js'] })
    expect(group.stats()).toBeUndefined()
    expect(await group.remove()).toBe(true)
  })
})
