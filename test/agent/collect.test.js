'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { Cgroup } = require('../../agent/collect/cgroup')
const { addons } = require('../../agent/collect/addons')
const { runQueue } = require('../../agent/collect/cpu')
const { loadedAllocator } = require('../../agent/protocol/allocators')
const { splitNodeOptions } = require('../../agent/protocol/node-options')
const { appName, appPackage } = require('../../agent/identity')
const { readConfig } = require('../../agent/protocol/config')
const { addressInHosts } = require('../../agent/lookup')
const { fileDescriptors, parseKind } = require('../../agent/collect/file-descriptors')
const { createMemoryGroup } = require('../../exporter/process/memory-group')
const {
  NODES,
  versionOf,
  environment,
  startCollector,
  spawnBounded,
  spawnWatched,
  AGENT
} = require('../support/agent-collector')
const { writeAddon } = require('../support/addon-file')
const { defined } = require('../support/defined')
const { itInGroup } = require('../support/memory-groups')

const MIB = 2 ** 20
const GIB = 2 ** 30
const HOST_BYTES = 16 * GIB
const UNLIMITED_V1 = '9223372036854771712\n'

/**
 * First frame of the cgroup collector on a machine of plain files.
 * @param {{ cgroup: string, mounts: string[], files: Record<string, string> }} machine
 * @param {number} [fallbackLimitBytes]
 */
function readCgroup ({ cgroup: groups, mounts, files }, fallbackLimitBytes) {
  const all = {
    '/proc/self/cgroup': groups,
    '/proc/self/mountinfo':
      mounts.map((mount, i) => `${30 + i} 25 0:${26 + i} ${mount}`).join('\n') + '\n',
    ...files
  }
  const read = file => {
    if (!(file in all)) throw new Error(`ENOENT ${file}`)
    return all[file]
  }
  const collector = new Cgroup({
    hostMemoryBytes: HOST_BYTES,
    fallbackLimitBytes,
    exists: file => file in all,
    files: { read, readKept: read }
  })
  const values = {}
  collector.start?.()
  collector.read(values, { count: 0, nowSeconds: 0 })
  return values
}

const V2_MOUNT = '/ /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate'
const V1_MEMORY = '/ /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory'
const V1_CPU = '/ /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct'
/**
 * @param {string} folder
 * @param {Record<string, string>} files
 */
const inFolder = (folder, files) =>
  Object.fromEntries(Object.entries(files).map(([name, text]) => [`${folder}/${name}`, text]))

describe('the run queue', () => {
  /**
   * Returns the frames in which the collector reads the file.
   * @param {number[]} times seconds
   */
  const readAt = times => {
    const collector = runQueue({ read: () => '5000000 2000000000 7\n' })
    return times.filter((nowSeconds, count) => {
      /** @type {{ runQueueWaitSeconds?: number }} */
      const values = {}
      collector.read(values, { count, nowSeconds })
      return values.runQueueWaitSeconds === 2
    })
  }
  it('is read in the first frame and every fifth one', () => {
    expect(readAt([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10])).toEqual([0, 4, 9])
  })
  it('tells how long the thread ran and waited', () => {
    /** @type {Record<string, number>} */
    const values = {}
    runQueue({ read: () => '5000000 2000000000 7\n' }).read(values, { count: 0, nowSeconds: 0 })
    expect(values).toEqual({ threadRunSeconds: 0.005, runQueueWaitSeconds: 2 })
  })
  it('is read every six seconds if frames are late', () => {
    expect(readAt([0, 5.9, 6, 9, 12, 15])).toEqual([0, 6, 12])
  })
})

describe('native addons', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-addons-'))
  afterAll(() => fs.rmSync(folder, { recursive: true }))
  const V8 = '_ZN2v87Isolate10GetCurrentEv'
  const V8_CONST = '_ZNK2v85Value8IsStringEv'
  const NODE_API = 'napi_create_object'
  const PIECE_BYTES = 16_384
  const MOST_NAMES_BYTES = MIB
  /** Bytes of the other names in the table: the addon's own function and the empty name. */
  const OWN_NAMES_BYTES = '\0napi_register_module_v1\0'.length

  /**
   * @param {string} name
   * @param {Parameters<typeof writeAddon>[1]} [content]
   */
  const file = (name, content) => {
    const at = path.join(folder, name)
    writeAddon(at, content)
    return at
  }
  /**
   * @param {string[]} files
   * @param {number} [frames]
   */
  const inspect = (files, frames = 20) => {
    const collector = addons()
    const maps = files
      .map((name, i) => `7f000000${i}000-7f000000${i}fff r-xp 00000000 08:01 12${i} ${name}`)
      .join('\n')
    /** @type {import('../../agent/protocol/frame').Frame['values']} */
    const values = {}
    for (let frame = 0; frame < frames; frame++) {
      collector.readMaps(maps)
      collector.read(values, { count: frame, nowSeconds: frame })
    }
    return values.addons
  }

  it.each(NODES.map(node => [versionOf(node), node]))(
    'of Node %s are classified by the names they import, whatever the size of the file',
    async (_, node) => {
      const fillerBytes = 24 * MIB
      const files = [
        file('nan.node', { imports: [NODE_API, V8], fillerBytes }),
        file('napi.node', { imports: [NODE_API], fillerBytes }),
        file('gone.node', { imports: [NODE_API] })
      ]
      const collector = await startCollector()
      const { child, ended } = spawnWatched({
        node,
        socket: collector.address,
        args: [
          '-e',
          `for (const file of ${JSON.stringify(files)}) require(file)
          require('fs').rmSync(${JSON.stringify(files[2])})
          setInterval(() => {}, 1000)`
        ]
      })
      try {
        const seen = await collector.until(([connection]) =>
          connection?.frames.map(frame => frame.values.addons).find(found => found?.['v8/nan.node'])
        )
        expect(seen).toEqual({ 'v8/nan.node': 1, 'node_api/napi.node': 1, 'unread/gone.node': 1 })
      } finally {
        child.kill()
        await ended
        await collector.stop()
      }
    },
    60_000
  )
  it('cost a few KiB of reads in a file of megabytes', () => {
    const long = file('long.node', { imports: [NODE_API], fillerBytes: 24 * MIB })
    const readBytes = () =>
      Number(/^rchar: (\d+)$/m.exec(fs.readFileSync('/proc/self/io', 'latin1'))?.[1])
    const before = readBytes()
    expect(inspect([long], 1)).toEqual({ 'node_api/long.node': 1 })
    expect(readBytes() - before).toBeLessThan(PIECE_BYTES)
  })
  it.each([
    ['a function', V8],
    ['a method that changes nothing', V8_CONST]
  ])('import %s of V8 at any place in the table of names', (_, name) => {
    for (let shift = 0; shift <= name.length; shift++) {
      // The name begins this many bytes before the end of the first piece.
      const filler = 'x'.repeat(PIECE_BYTES - OWN_NAMES_BYTES - 1 - shift)
      const at = file('shifted.node', { imports: [filler, name, NODE_API] })
      expect([shift, inspect([at])]).toEqual([shift, { 'v8/shifted.node': 1 }])
    }
  })
  it.each([
    [0, 'node_api'],
    [1, 'unread']
  ])('whose list of names exceeds the limit by %d bytes are %s', (more, abi) => {
    const name = 'x'.repeat(MOST_NAMES_BYTES - OWN_NAMES_BYTES - 1 + more)
    const at = file('names.node', { imports: [name] })
    expect(inspect([at], 300)).toEqual({ [`${abi}/names.node`]: 1 })
  })
  it('are not read if the file is not a 64-bit ELF file or is incomplete', () => {
    const whole = fs.readFileSync(file('whole.node', { imports: [NODE_API] }))
    /** @type {[string, (content: Buffer) => Buffer][]} */
    const changes = [
      ['empty', () => Buffer.alloc(0)],
      ['text', () => Buffer.from('#!/bin/sh\n')],
      ['header', content => content.subarray(0, 63)],
      ['class32', content => content.fill(1, 4, 5)],
      ['far', content => content.fill(255, 32, 40)],
      ['headers', content => content.fill(0, 56, 58)],
      ['dynamic', content => content.subarray(0, -96)],
      ['names', content => content.subarray(0, 1100)]
    ]
    for (const [name, change] of changes) {
      const at = path.join(folder, `${name}.node`)
      fs.writeFileSync(at, change(Buffer.from(whole)))
      expect(inspect([at])).toEqual({ [`unread/${name}.node`]: 1 })
    }
  })
  it('are an empty map in a process without addons', () => {
    expect(inspect(['/usr/lib/libc.so.6'], 1)).toEqual({})
  })
})

describe('cgroup', () => {
  it('version 2, in a container: limit, working set, events, pressure, quota', () => {
    expect(
      readCgroup({
        cgroup: '0::/\n',
        mounts: [V2_MOUNT],
        files: inFolder('/sys/fs/cgroup', {
          'memory.max': `${512 * MIB}\n`,
          'memory.high': `${400 * MIB}\n`,
          'memory.current': `${300 * MIB}\n`,
          'memory.stat': 'anon 1\nfile 2\ninactive_anon 7\ninactive_file ' +
            `${100 * MIB}\nworkingset_refault_file 3\n`,
          'memory.events': 'low 0\nhigh 12\nmax 34\noom 5\noom_kill 2\noom_group_kill 0\n',
          'memory.pressure':
            'some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\nfull avg10=0.00 avg60=0.00 ' +
              'avg300=0.00 total=250000\n',
          'cpu.max': '150000 100000\n',
          'cpu.stat': 'usage_usec 9\nnr_periods 100\nnr_throttled 7\nthrottled_usec 2500000\n',
          'cpu.pressure': 'some avg10=0.00 avg60=0.00 avg300=0.00 total=3000000\n'
        })
      })
    ).toEqual({
      containerLimitBytes: 512 * MIB,
      containerHighBytes: 400 * MIB,
      containerUsageBytes: 300 * MIB,
      containerWorkingSetBytes: 200 * MIB,
      containerLimitHits: 34,
      containerHighHits: 12,
      containerOomEvents: 5,
      containerOomKills: 2,
      memoryPressureSomeSeconds: 1.5,
      memoryPressureFullSeconds: 0.25,
      cpuPressureSomeSeconds: 3,
      cpuQuotaCores: 1.5,
      cpuPeriods: 100,
      cpuThrottledPeriods: 7,
      cpuThrottledSeconds: 2.5
    })
  })

  it('version 1 in a container, where the path of the host is not below the mount', () => {
    expect(
      readCgroup({
        cgroup: '5:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc\n',
        mounts: [
          '/docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory',
          '/docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct'
        ],
        files: {
          ...inFolder('/sys/fs/cgroup/memory', {
            'memory.limit_in_bytes': `${256 * MIB}\n`,
            'memory.usage_in_bytes': `${100 * MIB}\n`,
            'memory.stat': `inactive_file 5\ntotal_inactive_file ${40 * MIB}\n`,
            'memory.failcnt': '3\n',
            'memory.oom_control': 'oom_kill_disable 0\nunder_oom 0\noom_kill 1\n'
          }),
          ...inFolder('/sys/fs/cgroup/cpu,cpuacct', {
            'cpu.cfs_quota_us': '50000\n',
            'cpu.cfs_period_us': '100000\n',
            'cpu.stat': 'nr_periods 10\nnr_throttled 4\nthrottled_time 2000000000\n'
          })
        }
      })
    ).toEqual({
      containerLimitBytes: 256 * MIB,
      containerUsageBytes: 100 * MIB,
      containerWorkingSetBytes: 60 * MIB,
      containerLimitHits: 3,
      containerOomKills: 1,
      cpuQuotaCores: 0.5,
      cpuPeriods: 10,
      cpuThrottledPeriods: 4,
      cpuThrottledSeconds: 2
    })
  })

  /** @type {[string, Parameters<typeof readCgroup>[0], number | undefined][]} */
  const LIMITS = [
    [
      'version 2, max',
      {
        cgroup: '0::/a\n',
        mounts: [V2_MOUNT],
        files: inFolder('/sys/fs/cgroup/a', { 'memory.max': 'max\n', 'memory.current': '1\n' })
      },
      undefined
    ],
    [
      'version 2, where the parent has a smaller one',
      {
        cgroup: '0::/kubepods/pod/c\n',
        mounts: [V2_MOUNT],
        files: {
          ...inFolder('/sys/fs/cgroup/kubepods/pod/c', {
            'memory.max': `${2 * GIB}\n`,
            'memory.current': '1\n'
          }),
          ...inFolder('/sys/fs/cgroup/kubepods/pod', {
            'memory.max': `${GIB}\n`,
            'memory.current': '2\n'
          }),
          ...inFolder('/sys/fs/cgroup/kubepods', { 'memory.max': 'max\n', 'memory.current': '3\n' })
        }
      },
      GIB
    ],
    [
      'version 2, where only a parent has one',
      {
        cgroup: '0::/p/c\n',
        mounts: [V2_MOUNT],
        files: {
          ...inFolder('/sys/fs/cgroup/p/c', { 'memory.max': 'max\n', 'memory.current': '1\n' }),
          ...inFolder('/sys/fs/cgroup/p', { 'memory.max': `${GIB}\n`, 'memory.current': '2\n' })
        }
      },
      GIB
    ],
    [
      'version 2, where the process left its cgroup namespace',
      {
        cgroup: '0::/../outside\n',
        mounts: [V2_MOUNT],
        files: inFolder('/sys/fs/cgroup', { 'memory.max': `${GIB}\n`, 'memory.current': '1\n' })
      },
      GIB
    ],
    [
      'version 2, mounted at a second place, too',
      {
        cgroup: '0::/a\n',
        mounts: ['/other /mnt/elsewhere ro - cgroup2 cgroup2 rw', V2_MOUNT],
        files: inFolder('/sys/fs/cgroup/a', { 'memory.max': `${GIB}\n`, 'memory.current': '1\n' })
      },
      GIB
    ],
    [
      'version 2, equal to the memory of the machine',
      {
        cgroup: '0::/a\n',
        mounts: [V2_MOUNT],
        files: inFolder('/sys/fs/cgroup/a', {
          'memory.max': `${HOST_BYTES}\n`,
          'memory.current': '1\n'
        })
      },
      undefined
    ],
    [
      'version 2, one page less than the machine has',
      {
        cgroup: '0::/a\n',
        mounts: [V2_MOUNT],
        files: inFolder('/sys/fs/cgroup/a', {
          'memory.max': `${HOST_BYTES - 4096}\n`,
          'memory.current': '1\n'
        })
      },
      HOST_BYTES - 4096
    ],
    [
      'version 1, unlimited',
      {
        cgroup: '4:memory:/a\n',
        mounts: [V1_MEMORY],
        files: inFolder('/sys/fs/cgroup/memory/a', {
          'memory.limit_in_bytes': UNLIMITED_V1,
          'memory.usage_in_bytes': '1\n'
        })
      },
      undefined
    ],
    [
      'version 1, set on a parent',
      {
        cgroup: '4:memory:/a/b\n',
        mounts: [V1_MEMORY],
        files: {
          ...inFolder('/sys/fs/cgroup/memory/a/b', {
            'memory.limit_in_bytes': UNLIMITED_V1,
            'memory.usage_in_bytes': '1\n'
          }),
          ...inFolder('/sys/fs/cgroup/memory/a', {
            'memory.limit_in_bytes': `${GIB}\n`,
            'memory.usage_in_bytes': '1\n'
          }),
          ...inFolder('/sys/fs/cgroup/memory', {
            'memory.limit_in_bytes': UNLIMITED_V1,
            'memory.usage_in_bytes': '1\n'
          })
        }
      },
      GIB
    ],
    [
      'hybrid: memory is version 1 beside an empty version 2',
      {
        cgroup: '4:memory:/a\n3:cpu,cpuacct:/a\n0::/a\n',
        mounts: ['/ /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw', V1_CPU, V1_MEMORY],
        files: inFolder('/sys/fs/cgroup/memory/a', {
          'memory.limit_in_bytes': `${GIB}\n`,
          'memory.usage_in_bytes': '1\n'
        })
      },
      GIB
    ],
    [
      'hybrid: memory is version 2 beside version 1',
      {
        cgroup: '3:cpu,cpuacct:/a\n0::/a\n',
        mounts: [V1_CPU, '/ /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw'],
        files: inFolder('/sys/fs/cgroup/unified/a', {
          'memory.max': `${GIB}\n`,
          'memory.current': '1\n'
        })
      },
      GIB
    ],
    ['none at all', { cgroup: '', mounts: ['/ / rw - ext4 /dev/vda rw'], files: {} }, undefined]
  ]
  it.each(LIMITS)('limit: %s', (_, machine, limit) => {
    expect(readCgroup(machine).containerLimitBytes).toBe(limit)
  })

  it('uses the limit of the downward API only if no cgroup is readable', () => {
    const unread = { cgroup: '', mounts: ['/ / rw - ext4 /dev/vda rw'], files: {} }
    expect(
      [GIB, HOST_BYTES, 0].map(bytes => readCgroup(unread, bytes).containerLimitBytes)
    ).toEqual([GIB, undefined, undefined])
    const limitless = {
      cgroup: '0::/a\n',
      mounts: [V2_MOUNT],
      files: inFolder('/sys/fs/cgroup/a', { 'memory.current': '1\n', 'memory.max': 'max\n' })
    }
    expect(readCgroup(limitless, GIB).containerLimitBytes).toBeUndefined()
  })

  it('reads max and −1 as no CPU quota', () => {
    const v2 = inFolder('/sys/fs/cgroup/a', {
      'memory.current': '1\n',
      'cpu.max': 'max 100000\n',
      'cpu.stat': 'nr_periods 0\n'
    })
    expect(readCgroup({ cgroup: '0::/a\n', mounts: [V2_MOUNT], files: v2 })).not.toHaveProperty(
      'cpuQuotaCores'
    )
    const v1 = inFolder('/sys/fs/cgroup/cpu,cpuacct/a', {
      'cpu.cfs_quota_us': '-1\n',
      'cpu.cfs_period_us': '100000\n'
    })
    expect(
      readCgroup({ cgroup: '3:cpu,cpuacct:/a\n', mounts: [V1_CPU], files: v1 })
    ).not.toHaveProperty('cpuQuotaCores')
  })
})

const MAPS =
  '7f2000000000-7f2000028000 r--p 00000000 08:02 135522     /usr/lib/x86_64-linux-gnu/libc.so.6\n'

describe('the allocator', () => {
  /** @type {[string, string | undefined, object][]} */
  const ALLOCATORS = [
    ['glibc', MAPS, { libc: 'glibc', allocator: 'glibc' }],
    [
      'older glibc',
      '7f2000000000-7f2000028000 r-xp 00000000 08:02 1 /lib/x86_64-linux-gnu/libc-2.31.so\n',
      { libc: 'glibc', allocator: 'glibc' }
    ],
    [
      'musl',
      '7f2000000000-7f2000028000 r-xp 00000000 08:02 1 /lib/ld-musl-x86_64.so.1\n',
      { libc: 'musl', allocator: 'musl' }
    ],
    [
      'jemalloc',
      MAPS + '7f3000000000-7f3000028000 r-xp 00000000 08:02 1 /usr/lib/libjemalloc.so.2\n',
      { libc: 'glibc', allocator: 'jemalloc', allocatorPath: '/usr/lib/libjemalloc.so.2' }
    ],
    [
      'mimalloc',
      MAPS + '7f3000000000-7f3000028000 r-xp 00000000 08:02 1 /opt/a b/libmimalloc.so.2.1\n',
      { libc: 'glibc', allocator: 'mimalloc', allocatorPath: '/opt/a b/libmimalloc.so.2.1' }
    ],
    [
      'tcmalloc',
      MAPS + '7f3000000000-7f3000028000 r-xp 00000000 08:02 1 /usr/lib/libtcmalloc_minimal.so.4\n',
      { libc: 'glibc', allocator: 'tcmalloc', allocatorPath: '/usr/lib/libtcmalloc_minimal.so.4' }
    ],
    [
      'a folder of that name',
      MAPS + '7f3000000000-7f3000028000 r-xp 00000000 08:02 1 /libjemalloc/other.so\n',
      { libc: 'glibc', allocator: 'glibc' }
    ],
    ['what cannot be read', undefined, { libc: 'unknown', allocator: 'unknown' }]
  ]
  it.each(ALLOCATORS)('is recognized by the loaded objects: %s', (_, maps, expected) => {
    expect(loadedAllocator(maps)).toEqual(expected)
  })
})

describe('file descriptors', () => {
  const LINKS = /** @type {const} */ ([
    ['socket:[4711]', 'socket'],
    ['pipe:[8]', 'pipe'],
    ['/srv/app/file (deleted)', 'file'],
    ['/dev/null', 'file'],
    ['/memfd:x', 'file'],
    ['anon_inode:[eventpoll]', 'eventpoll'],
    ['anon_inode:inotify', 'inotify'],
    ['anon_inode:[io_uring]', 'io_uring'],
    ['anon_inode:[__proto__]', 'other'],
    ['anon_inode:bpf-map', 'other'],
    ['net:[4026531840]', 'other'],
    ['', 'other']
  ])
  it.each(LINKS)('%s is a %s', (link, kind) => expect(parseKind(link)).toBe(kind))

  /**
   * Reads frames of a process with this many descriptors: one socket for every three files.
   * @param {{ open: (second: number) => number, frames: number, sizeTells?: boolean }} machine
   */
  function watch ({ open, frames, sizeTells = true }) {
    let second = 0
    let links = 0
    let lists = 0
    let mostInFrame = 0
    const collector = fileDescriptors({
      stat: () => ({ size: sizeTells ? open(second) : 0 }),
      // The folder is open while it is read, and counts as well.
      list: () => {
        lists++
        return Array.from({ length: open(second) + 1 }, (_, i) => String(i))
      },
      readLink: file => {
        links++
        const number = Number(file.split('/').at(-1))
        if (number >= open(second)) throw Object.assign(new Error('gone'), { code: 'ENOENT' })
        return number % 4 === 0 ? 'socket:[1]' : '/file'
      }
    })
    /** @type {{ second: number, descriptors: Record<string, number> }[]} */
    const told = []
    for (; second < frames; second++) {
      const before = links
      const values = /** @type {any} */ ({})
      collector.read(values, { count: second, nowSeconds: second })
      mostInFrame = Math.max(mostInFrame, links - before)
      if (values.descriptors) told.push({ second, descriptors: { ...values.descriptors } })
    }
    return { told, links, lists, mostInFrame }
  }
  const linux = process.platform === 'linux' ? it : it.skip

  linux.each([true, false])(
    'are read by kind only once while their number is constant (folder has a size: %s)',
    sizeTells => {
      const { told, links, lists } = watch({ open: () => 40, frames: 300, sizeTells })
      expect(told).toEqual([{ second: expect.any(Number), descriptors: { socket: 10, file: 30 } }])
      expect(links).toBeLessThanOrEqual(41)
      if (sizeTells) expect(lists).toBe(1)
      else expect(lists).toBeGreaterThan(10)
    }
  )
  linux('are classified again if their number changed, every ten seconds at most', () => {
    const { told } = watch({ open: second => 40 + second, frames: 100 })
    expect(told.length).toBeGreaterThan(5)
    expect(told.length).toBeLessThanOrEqual(10)
    expect(watch({ open: second => (second < 50 ? 40 : 43), frames: 100 }).told.length).toBe(1)
    expect(watch({ open: second => (second < 50 ? 40 : 44), frames: 100 }).told.length).toBe(2)
  })
  linux('are sampled, some in each frame, if there are a hundred thousand', () => {
    const { told, links, mostInFrame } = watch({ open: () => 100_000, frames: 60 })
    expect(told.length).toBe(1)
    expect(links).toBeLessThanOrEqual(513)
    expect(mostInFrame).toBeLessThanOrEqual(64)
    const { socket, file } = told[0].descriptors
    expect(socket + file).toBeGreaterThan(99_000)
    expect(socket / (socket + file)).toBeCloseTo(0.25, 1)
  })
})

describe('identity', () => {
  it.each([
    ['', []],
    ['--max-old-space-size=100', ['--max-old-space-size=100']],
    ['  -r ./a.js   --enable-source-maps ', ['-r', './a.js', '--enable-source-maps']],
    ['--require "./a b.js"', ['--require', './a b.js']],
    ['--title="a \\"b\\" \\\\c"', ['--title=a "b" \\c']],
    ['--title=a\\b', ['--title=a\\b']],
    ['""', ['']]
  ])('splits NODE_OPTIONS as Node does: %j', (text, expected) => {
    expect(splitNodeOptions(text)).toEqual(expected)
  })

  it.each([
    [undefined, 'node'],
    [__filename, 'memwatch-workspace'],
    [AGENT, '@memwatch/agent'],
    ['/no/such/folder/server.js', 'server'],
    ['/no/such/folder/server.prod.mjs', 'server.prod'],
    ['/no/such/folder/bin', 'bin']
  ])('names the app of %s', (script, expected) => {
    expect(appName(script)).toBe(expected)
  })

  describe('of a program in node_modules,', () => {
    let folder
    beforeAll(() => {
      folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-names-'))
      const write = (at, json) => {
        fs.mkdirSync(path.join(folder, at), { recursive: true })
        fs.writeFileSync(path.join(folder, at, 'package.json'), JSON.stringify(json))
      }
      write('.', { name: 'shops' })
      write('apps/web', { name: 'web' })
      write('node_modules/vite', { name: 'vite', bin: { vite: './bin/vite.js' } })
      write('node_modules/one', { name: 'one', bin: 'one.js' })
      write('node_modules/next', { name: 'next', bin: { next: './dist/bin/next' } })
      write('node_modules/next/dist/compiled/jest-worker', { name: 'jest-worker' })
      write('node_modules/odd', { name: 'odd', bin: { odd: 7 } })
    })
    afterAll(() => fs.rmSync(folder, { recursive: true }))

    it.each([
      ['.bin/next', 'apps/web', 'web'],
      ['next/dist/bin/next', 'apps/web', 'web'],
      ['next/dist/server/lib/start-server.js', 'apps/web', 'web'],
      ['vite/bin/vite.js', '.', 'shops'],
      ['one/one.js', '.', 'shops'],
      ['one/one.js', '..', 'shops'],
      ['next/dist/compiled/jest-worker/processChild.js', 'apps/web', 'jest-worker'],
      ['one/other.js', 'apps/web', 'one'],
      ['odd/odd.js', 'apps/web', 'odd']
    ])('%s, run in %s, is called %s', (script, cwd, expected) => {
      const file = path.join(folder, 'node_modules', script)
      const app = appPackage(file, { workingFolder: () => path.join(folder, cwd) })
      expect(appName(file, app)).toBe(expected)
    })
    it('a removed working folder gives no name', () => {
      const removed = () => { throw new Error('ENOENT: uv_cwd') }
      const file = path.join(folder, 'node_modules/one/one.js')
      expect(appName(file, appPackage(file, { workingFolder: removed }))).toBe('one')
    })
    it.each([
      [undefined, 'apps/web', 'web'],
      ['node_modules/one/other.js', 'apps/web', 'web'],
      ['apps/web/worker.js', '.', 'web'],
      ['node_modules/one/other.js', '..', 'shops']
    ])('a worker that runs %s in %s has the name of its app, %s', (script, cwd, expected) => {
      const workingFolder = () => path.join(folder, cwd)
      const file = script && path.join(folder, script)
      expect(appName(file, appPackage(file, { workingFolder, isWorker: true }))).toBe(expected)
    })
  })

  it('finds a name in a hosts file', () => {
    const hosts =
      '# 10.0.0.9 exporter\n127.0.0.1\tlocalhost\n10.0.0.1 a.example exporter # and more\n::1 six\n'
    expect(
      ['exporter', 'localhost', 'six', 'more', 'b'].map(name => addressInHosts(hosts, name))
    ).toEqual(['10.0.0.1', '127.0.0.1', '::1', undefined, undefined])
  })
})

describe('config', () => {
  /** @type {[string, string, string, unknown][]} */
  const ACCEPTED = [
    ['MEMWATCH_INTERVAL_SECONDS', '0.1', 'intervalSeconds', 0.1],
    ['MEMWATCH_INTERVAL_SECONDS', '60', 'intervalSeconds', 60],
    ['MEMWATCH_INTERVAL_SECONDS', '', 'intervalSeconds', 1],
    ['MEMWATCH_NAME', 'n'.repeat(128), 'name', 'n'.repeat(128)],
    ['MEMWATCH_SOCKET', 'tcp://exporter:65535', 'socket', { host: 'exporter', port: 65535 }],
    ['MEMWATCH_SOCKET', 'tcp://[::1]:9090', 'socket', { host: '::1', port: 9090 }],
    ['MEMWATCH_SOCKET', '/run/memwatch.sock', 'socket', { path: '/run/memwatch.sock' }],
    [
      'MEMWATCH_POD_NAME',
      `shop-5d4c.${'x'.repeat(243)}`,
      'podName',
      `shop-5d4c.${'x'.repeat(243)}`
    ],
    ['MEMWATCH_MEMORY_LIMIT_BYTES', '536870912', 'memoryLimitBytes', 536_870_912],
    ['MEMWATCH_MEMORY_LIMIT_BYTES', '', 'memoryLimitBytes', 0],
    ['MEMWATCH_DISABLED', 'true', 'disabled', true],
    ['MEMWATCH_DISABLED', '0', 'disabled', false]
  ]
  it.each(ACCEPTED)('%s=%s is accepted', (env, text, name, value) => {
    expect(readConfig({ [env]: text })[name]).toEqual(value)
  })

  it.each([
    ['MEMWATCH_INTERVAL_SECONDS', '0.0999'],
    ['MEMWATCH_INTERVAL_SECONDS', '60.001'],
    ['MEMWATCH_INTERVAL_SECONDS', 'often'],
    ['MEMWATCH_NAME', 'n'.repeat(129)],
    ['MEMWATCH_SOCKET', 'tcp://exporter:65536'],
    ['MEMWATCH_SOCKET', 'tcp://exporter'],
    ['MEMWATCH_SOCKET', 'tcp://:9090'],
    ['MEMWATCH_POD_UID', 'a b'],
    ['MEMWATCH_CONTAINER', 'x'.repeat(254)],
    ['MEMWATCH_MEMORY_LIMIT_BYTES', '512Mb'],
    ['MEMWATCH_DISABLED', 'yes']
  ])('%s=%s is refused', (env, text) => {
    expect(() => readConfig({ [env]: text })).toThrow(env)
  })
})

describe.each(NODES.map(node => [versionOf(node), node]))(
  'for real on Node %s',
  (version, node) => {
    /** @type {import('../support/agent-collector').Collector} */
    let collector
    beforeEach(async () => {
      collector = await startCollector()
    })
    afterEach(() => collector.stop())
    const quick = { MEMWATCH_INTERVAL_SECONDS: '0.1' }

    /**
     * @param {string} code
     * @param {NodeJS.ProcessEnv} [env]
     * @param {string[]} [args]
     */
    async function run (code, env = quick, args = []) {
      const end = await spawnWatched({
        node,
        args: [...args, '-e', code],
        socket: collector.address,
        env
      }).ended
      expect(end.code).toBe(0)
      return { ...end, ...defined(collector.connections.at(-1)) }
    }

    /**
     * Runs code that defines act(), calls it after the first frame, and ends the process after the
     * frame in which the expected values are, however busy the machine is.
     * @param {string} code
     * @param {(values: any) => boolean} isDone
     * @param {NodeJS.ProcessEnv} [env]
     */
    async function runAfterFirstFrame (code, isDone, env) {
      const { child, ended } = spawnWatched({
        node,
        args: ['-e', `${code}
          setInterval(() => {}, 1000)
          process.once('SIGUSR2', () => { process.once('SIGUSR2', () => process.exit()); act() })`],
        socket: collector.address,
        env: { MEMWATCH_INTERVAL_SECONDS: '0.2', ...env },
        timeoutMs: 50_000
      })
      const lastOf = (/** @type {any[]} */ all) => all.at(-1)?.frames.at(-1)
      await collector.until(lastOf, 20_000)
      child.kill('SIGUSR2')
      await collector.until(all => isDone(lastOf(all).values), 20_000)
      child.kill('SIGUSR2')
      expect((await ended).code).toBe(0)
      return defined(collector.connections.at(-1))
    }

    // V8 sometimes places its code directly after [heap]. Then [heap] cannot grow, and malloc maps
    // memory elsewhere. So the test compares frames with the size of [heap] in the kernel's map.
    it('reports the memory of malloc', async () => {
      const { frames, stdout } = await run(`
      globalThis.kept = Array.from({ length: 800 }, () => Buffer.alloc(${64 * 1024}, 1))
      setTimeout(() => {
        const maps = require('fs').readFileSync('/proc/self/smaps', 'utf8')
        console.log(/ \\[heap\\]\\n[^]*?Rss: +(\\d+)/.exec(maps)[1] * 1024)
      }, 2000)`)
      const heapBytes = Number(stdout)
      // The agent repeats a scan if memory changed during it. On a busy machine a later frame
      // therefore reports the scan.
      const { mallocHeapBytes, mallocArenas, rssBytes } = Object.assign(
        {},
        ...frames.map(({ values }) => values)
      )
      expect(Math.abs(mallocHeapBytes - heapBytes)).toBeLessThan(4 * MIB)
      expect(mallocHeapBytes).toBeLessThan(rssBytes)
      expect(mallocArenas).toBeGreaterThanOrEqual(1)
    })

    const jemalloc =
      fs.existsSync('/usr/lib') &&
      ['x86_64', 'aarch64']
        .map(arch => `/usr/lib/${arch}-linux-gnu/libjemalloc.so.2`)
        .find(file => fs.existsSync(file))
    ;(jemalloc ? it : it.skip)('names jemalloc if it is loaded', async () => {
      const { hello } = await run('setTimeout(() => {}, 250)', {
        ...quick,
        LD_PRELOAD: /** @type {string} */ (jemalloc)
      })
      expect(hello.allocator).toBe('jemalloc')
      expect(hello.allocatorPath).toContain('libjemalloc.so')
      expect(hello.mallocEnv.LD_PRELOAD).toBe(jemalloc)
    })

    it('ignores an LD_PRELOAD whose library is missing', async () => {
      const { hello } = await run('setTimeout(() => {}, 250)', {
        ...quick,
        LD_PRELOAD: '/nowhere/libjemalloc.so.2'
      })
      expect(hello.allocator).toBe(hello.libc)
    })

    itInGroup('reports the limit of its memory group, and how often it was met', async () => {
      const group = createMemoryGroup({ limitBytes: 300 * MIB, name: 'agent-test' })
      const file = path.join(__dirname, `.pages-${process.pid}`)
      // The cgroup is charged for page cache, too: written files reach the limit, and the kernel
      // reclaims them without a kill.
      const { command, args } = group.wrap(node, [
        '-r',
        AGENT,
        '-e',
        `
      const fs = require('fs'), part = Buffer.alloc(${16 * MIB}, 1), fd = fs.openSync(${JSON.stringify(file)}, 'w')
      for (let i = 0; i < 24; i++) fs.writeSync(fd, part)
      // From here on it is met no more, whatever is still read.
      fs.ftruncateSync(fd)
      fs.writeSync(fd, part, 0, part.length, 0)
      setTimeout(() => {}, 1200)`
      ])
      try {
        const { code } = await spawnBounded(command, args, {
          env: environment({ ...quick, MEMWATCH_SOCKET: collector.address })
        }).ended
        expect(code).toBe(0)
        const { limitHits, oomKills } = /** @type {NonNullable<ReturnType<typeof group.stats>>} */ (
          group.stats()
        )
        const [{ hello, frames }] = collector.connections
        const seen = Object.assign({}, ...frames.map(({ values }) => values))
        expect(seen).toMatchObject({
          containerLimitBytes: 300 * MIB,
          containerLimitHits: limitHits,
          containerOomKills: oomKills
        })
        expect(limitHits).toBeGreaterThan(0)
        expect(seen.containerWorkingSetBytes).toBeLessThan(seen.containerUsageBytes)
        if (hello.constrainedBytes !== undefined) expect(hello.constrainedBytes).toBe(300 * MIB)
      } finally {
        fs.rmSync(file, { force: true })
        await group.remove()
      }
    })

    it('counts descriptors and threads that process.getActiveResourcesInfo() omits', async () => {
      const watch = () => run(
        `
      const { Worker } = require('worker_threads'), fs = require('fs'), http = require('http')
      const server = http.createServer({ keepAliveTimeout: 60_000 }, (_, response) => response.end()).listen(0, () => {
        for (let i = 0; i < 20; i++) {
          // An agent for each request: its idle socket is unref'd.
          http.get({ port: server.address().port, agent: new http.Agent({ keepAlive: true }) }, response => response.resume())
          fs.openSync(process.execPath)
        }
        for (let i = 0; i < 8; i++) new Worker('setInterval(() => {}, 1000)', { eval: true }).unref()
      })
      setTimeout(() => process.exit(), 13_500)`,
        { MEMWATCH_INTERVAL_SECONDS: '0.5' }
      )
      // Each worker has its own connection.
      const readFrames = () => collector.connections.flatMap(({ hello, frames }) =>
        hello?.threadId === 0 ? frames : []
      )
      const readKinds = () => readFrames().map(({ values }) => values.descriptors).filter(Boolean)
      // On a busy machine one run may be too short to read all links.
      for (let attempt = 0; attempt < 3 && readKinds().length === 0; attempt++) await watch()
      const frames = readFrames()
      const told = readKinds()
      const last = told.at(-1)
      expect(told.length).toBeLessThanOrEqual(3)
      // Both ends of each connection are in this process.
      expect(last.socket).toBeGreaterThanOrEqual(40)
      expect(last.file).toBeGreaterThanOrEqual(20)
      expect(last.eventpoll).toBeGreaterThanOrEqual(9)
      const { resources, threads } = Object.assign({}, ...frames.map(({ values }) => values))
      // Kinds are counted again only after a change of 5 %, so the total of the same time counts:
      // on a busy machine workers still start after it.
      const toldAt = frames.findLastIndex(({ values }) => values.descriptors)
      const untilTold = frames.slice(0, toldAt + 1)
      const { openFileDescriptors } = Object.assign({}, ...untilTold.map(({ values }) => values))
      const sum = Object.values(last).reduce((a, b) => a + b)
      expect(Math.abs(sum - openFileDescriptors)).toBeLessThan(12)
      expect(threads).toBeGreaterThanOrEqual(13)
      expect(resources.Worker ?? 0).toBe(0)
    }, 60_000)

    it('an idle app has no event loop delay and few wake-ups', async () => {
      // Other tests on this machine delay timers, so the run with the fewest wake-ups counts.
      let quietestMeanSeconds = Infinity
      let fewestTurns = Infinity
      for (
        let attempt = 0;
        attempt < 5 && (quietestMeanSeconds >= 0.002 || fewestTurns >= 2.3);
        attempt++
      ) {
        const { frames } = await run('setTimeout(() => {}, 7300)', {})
        const settled = frames.filter(({ uptimeSeconds }) => uptimeSeconds > 2)
        const [first, last] = [settled[0], settled.at(-2)]
        const seconds = last.uptimeSeconds - first.uptimeSeconds
        expect(seconds).toBeGreaterThanOrEqual(4)
        const [count, sum] = [0, 1].map(
          i => last.values.eventLoopDelay[i] - first.values.eventLoopDelay[i]
        )
        // The kernel's schedstat says how long the thread waited for a CPU: that is not the app's
        // event loop delay.
        const waits = frames.flatMap(({ values }) => values.runQueueWaitSeconds ?? [])
        const held = waits.length > 1 ? waits[waits.length - 1] - waits[0] : 0
        quietestMeanSeconds = Math.min(quietestMeanSeconds, (sum - held) / count)
        // A late timer makes the agent tick faster for two seconds, so the two seconds with the
        // fewest ticks count.
        const turns = settled
          .slice(0, -3)
          .map(
            ({ uptimeSeconds, values }, i) =>
              (settled[i + 2].values.eventLoopIterations - values.eventLoopIterations) /
              (settled[i + 2].uptimeSeconds - uptimeSeconds)
          )
        // Node 20 and later count turns of the loop
        fewestTurns = turns.some(Number.isNaN) ? 0 : Math.min(fewestTurns, ...turns)
      }
      expect(quietestMeanSeconds).toBeLessThan(0.002)
      expect(fewestTurns).toBeLessThan(2.3)
    }, 60_000)

    ;(fs.existsSync('/proc/self/schedstat') ? it : it.skip)(
      'reports how long the thread was ready while others had its CPU',
      async () => {
        const { frames } = await run(`
      const { Worker } = require('worker_threads')
      for (let i = 0; i < ${3 * os.availableParallelism()}; i++) new Worker('for (const end = Date.now() + 30_000; Date.now() < end;);', { eval: true })
      setInterval(() => { while (Date.now() % 50 < 45); }, 1)
      setTimeout(() => process.exit(), 4000)`)
        const waited = frames
          .map(({ values }) => values.runQueueWaitSeconds)
          .filter(value => value !== undefined)
        expect(waited.at(-1)).toBeGreaterThan(0.3)
        expect(waited).toEqual(waited.slice().sort((a, b) => a - b))
      }
    )

    it('a block of 300 ms in a busy app is the longest delay, weighted by length', async () => {
      const { frames } = await run(
        `
      const block = ms => { for (const end = performance.now() + ms; performance.now() < end;); }
      const busy = setInterval(() => block(6), 10)
      setTimeout(() => block(300), 1000)
      setTimeout(() => clearInterval(busy), 2000)`,
        { MEMWATCH_INTERVAL_SECONDS: '0.5' }
      )
      const longest = Math.max(...frames.map(({ values }) => values.eventLoopDelay[2]))
      expect(longest).toBeGreaterThanOrEqual(0.24)
      expect(longest).toBeLessThan(2)
      const [count, , , buckets] = frames.at(-1).values.eventLoopDelay
      // A random moment of these 2 s is in the block with a probability of 15 %.
      const { DELAY_BOUNDS_SECONDS: bounds } = require('../../agent/protocol/frame')
      const over = buckets
        .filter((_, i) => (bounds[i - 1] ?? 0) >= 0.05)
        .reduce((sum, n) => sum + n, 0)
      expect(over / count).toBeGreaterThan(0.03)
      expect(over / count).toBeLessThan(0.4)
    })

    it('counts Buffers that a GC freed as freed, though the app allocates no other', async () => {
      const { frames } = await runAfterFirstFrame(
        `
      require('node:v8').setFlagsFromString('--expose-gc')
      const gc = require('node:vm').runInNewContext('gc')
      let kept = Array.from({ length: 2000 }, () => new ArrayBuffer(20_000))
      const act = () => { kept = null; gc() }`,
        ({ externalBytes, arrayBuffersBytes }) =>
          externalBytes < 10 * MIB && arrayBuffersBytes < 10 * MIB
      )
      expect(frames[0].values.externalBytes).toBeGreaterThan(38 * MIB)
      // After eight seconds, 40 frames, a scan of the agent allocates one.
      expect(frames.length).toBeLessThan(25)
    })

    it.each([
      ['kept', 'own.push(cut)'],
      ['dropped', 'own[0] = cut']
    ])('counts slabs of the Buffer pool whose slices are %s', async (what, keep) => {
      const { frames } = await run(
        `
      require('node:v8').setFlagsFromString('--expose-gc')
      const gc = require('node:vm').runInNewContext('gc')
      const own = []
      setInterval(() => {
        for (let i = 0; i < 40; i++) {
          const cut = Buffer.from('x'.repeat(3000)).subarray(0, 8)
          ${keep}
        }
      }, 20)
      setInterval(gc, 60)
      setTimeout(() => process.exit(), 2500)`,
        { MEMWATCH_INTERVAL_SECONDS: '0.1' }
      )
      const { bufferPoolBytes, bufferSlabsFollowed, bufferSlabsKept } = frames.at(-1).values
      expect(bufferPoolBytes).toBeGreaterThanOrEqual(8192)
      expect(bufferSlabsFollowed).toBeGreaterThanOrEqual(5)
      if (what === 'kept') expect(bufferSlabsKept / bufferSlabsFollowed).toBeGreaterThan(0.8)
      else expect(bufferSlabsKept / bufferSlabsFollowed).toBeLessThan(0.2)
    })

    it.each([
      ['TCP', 'listen(0)', 'TCPServerWrap'],
      ['a Unix socket', 'listen("/tmp/memwatch-test-" + process.pid + ".sock")', 'PipeWrap']
    ])('counts connections that a server on %s accepted', async (_, listen, type) => {
      const { frames } = await runAfterFirstFrame(
        `
      const net = require('node:net')
      const server = net.createServer(socket => socket.on('error', () => {}).end('hi'))
      server.${listen}
      function act () {
        const to = server.address()
        for (let i = 0; i < 3; i++) net.connect(to.port ?? to).on('error', () => {}).resume()
      }`,
        ({ connectionsAccepted }) => connectionsAccepted === 3
      )
      expect(frames[0].values).toMatchObject({
        connectionsAccepted: 0,
        resources: expect.objectContaining({ [type]: 1 })
      })
      expect(frames.at(-1).values.connectionsAccepted).toBe(3)
    }, 60_000)

    it('counts events of sockets, where Node.js counts them', async () => {
      const rounds = 500
      const { frames } = await runAfterFirstFrame(
        `
      const net = require('node:net')
      const server = net.createServer(socket => socket.on('data', () => socket.write('x')))
      server.listen(0, '127.0.0.1')
      function act () {
        let left = ${rounds}
        const socket = net.connect(server.address().port, '127.0.0.1', () => socket.write('x'))
        socket.on('data', () => { if (--left > 0) socket.write('x') })
      }`,
        ({ eventLoopIterations: turns, eventLoopEvents: events }) =>
          turns === undefined || events >= 2 * rounds
      )
      const [first, last] = [frames[0].values, frames.at(-1).values]
      expect('eventLoopEvents' in first).toBe('eventLoopIterations' in first)
      if (!('eventLoopIterations' in first)) return
      expect(first.eventLoopEvents).toBeLessThan(rounds)
      expect(last.eventLoopEvents - first.eventLoopEvents).toBeLessThan(3 * rounds)
    })

    it('counts connections of a cluster worker, for which the primary listens', async () => {
      const script = path.join(os.tmpdir(), `memwatch-cluster-${process.pid}.js`)
      fs.writeFileSync(
        script,
        `
      const cluster = require('node:cluster')
      const http = require('node:http')
      if (cluster.isPrimary) cluster.fork().on('exit', () => process.exit())
      else {
        http.createServer((_, response) => response.end('hi')).listen(0, '127.0.0.1', function () {
          const { port } = this.address()
          setTimeout(() => http.get({ port, agent: false }, answer => answer.resume()), 400)
          process.once('SIGUSR2', () => process.exit())
        })
      }`
      )
      const { ended } = spawnWatched({
        node,
        args: [script],
        socket: collector.address,
        env: { MEMWATCH_INTERVAL_SECONDS: '0.2' },
        timeoutMs: 50_000
      })
      const worker = await collector.until(all => all.find(({ frames }) =>
        frames.at(-1)?.values.connectionsAccepted > 0
      ), 20_000)
      process.kill(worker.hello.pid, 'SIGUSR2')
      expect((await ended).code).toBe(0)
      fs.rmSync(script)
      expect(worker?.frames.at(-1).values.connectionsAccepted).toBe(1)
      expect(worker?.frames.every(({ values }) => !values.resources?.TCPServerWrap)).toBe(true)
    })

    it('counts each emitter with too many listeners once', async () => {
      const { frames } = await runAfterFirstFrame(
        `
      const { EventEmitter } = require('node:events')
      function act () {
        for (let emitter = 0; emitter < 3; emitter++) {
          const it = new EventEmitter()
          for (let i = 0; i < 15; i++) it.on('x', () => {})
        }
      }`,
        ({ listenerWarnings }) => listenerWarnings > 0,
        { NODE_NO_WARNINGS: '1' }
      )
      expect(frames[0].values.listenerWarnings).toBe(0)
      expect(frames.at(-1).values.listenerWarnings).toBe(3)
    }, 60_000)

    // Node 18 does not report the turns of its loop.
    ;(version.startsWith('18.') ? it.skip : it)(
      'a block of 300 ms in an idle app has a lower bound',
      async () => {
        const { frames } = await run(
          `
      setTimeout(() => { for (const end = performance.now() + 300; performance.now() < end;); }, 2500)
      setTimeout(() => {}, 4500)`,
          {}
        )
        expect(
          Math.max(...frames.map(({ values }) => values.eventLoopDelay[2]))
        ).toBeGreaterThanOrEqual(0.05)
      }
    )
  }
)
