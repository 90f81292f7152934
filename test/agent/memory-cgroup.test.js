'use strict'

const { execFileSync } = require('node:child_process')
const fs = require('node:fs')
const { createMemoryGroup } = require('../../exporter/process/memory-group')
const { memoryCgroup } = require('../../agent/collect/memory-cgroup')
const { MIB } = require('../support/frames')
const { itInGroup } = require('../support/memory-groups')

/**
 * @param {Record<string, string>} files
 * @param {Record<string, number>} inodes
 */
const inTree = (files, inodes) => memoryCgroup({
  read: file => {
    if (files[file] === undefined) throw Object.assign(new Error('ENOENT'), { code: 'ENOENT' })
    return files[file]
  },
  exists: file => files[file] !== undefined,
  readInode: folder => inodes[folder]
})
const v2 = (limits = {}) => ({
  '/proc/self/cgroup': '0::/app/web\n',
  '/proc/self/mountinfo': '30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n',
  '/sys/fs/cgroup/app/web/memory.current': '1\n',
  '/sys/fs/cgroup/app/memory.current': '1\n',
  ...limits
})
const INODES = { '/sys/fs/cgroup/app/web': 12, '/sys/fs/cgroup/app': 11 }

describe('the cgroup that a hello names', () => {
  it.each([
    ['its own one without any limit', v2(), '12'],
    [
      'its own one if that has the smallest limit',
      v2({
        '/sys/fs/cgroup/app/web/memory.max': '100\n',
        '/sys/fs/cgroup/app/memory.max': '101\n'
      }),
      '12'
    ],
    [
      'its own one if its parent has the same limit',
      v2({
        '/sys/fs/cgroup/app/web/memory.max': '100\n',
        '/sys/fs/cgroup/app/memory.max': '100\n'
      }),
      '12'
    ],
    [
      'its parent if that has the smallest limit',
      v2({ '/sys/fs/cgroup/app/web/memory.max': '100\n', '/sys/fs/cgroup/app/memory.max': '99\n' }),
      '11'
    ],
    [
      'its parent if its own one has no limit',
      v2({ '/sys/fs/cgroup/app/web/memory.max': 'max\n', '/sys/fs/cgroup/app/memory.max': '99\n' }),
      '11'
    ],
    ['undefined if nothing is readable', {}, undefined]
  ])('is %s', (_, files, expected) => {
    expect(inTree(files, INODES)).toBe(expected)
  })
  itInGroup('is equal for real processes of one cgroup, and differs between cgroups', async () => {
    const groups = [1, 2].map(number =>
      createMemoryGroup({ limitBytes: 100 * MIB, name: `cgroup-${number}` })
    )
    try {
      const idIn = group => {
        const { command, args } = group.wrap(process.execPath, [
          '-p',
          `require(${JSON.stringify(require.resolve('../../agent/collect/memory-cgroup'))}).memoryCgroup()`
        ])
        return execFileSync(command, args, { encoding: 'utf8' }).trim()
      }
      const [first, again, other] = [groups[0], groups[0], groups[1]].map(idIn)
      expect([first, again]).toEqual([String(fs.statSync(String(groups[0].path)).ino), first])
      expect(other).not.toBe(first)
    } finally {
      await Promise.all(groups.map(group => group.remove()))
    }
  })
})
