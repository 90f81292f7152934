'use strict'

const assert = require('node:assert')
const fs = require('node:fs')
const path = require('node:path')
const { fetchNode } = require('../../scripts/fetch-node')
const { tellFacts } = require('./tried')

const ROOT = path.join(__dirname, '../..')
/** The newest version of each line in npm's registry. */
const NODES = ['18.20.8', '20.20.2', '22.23.3', '24.21.0', '26.10.0']

/**
 * Cgroup version of the memory controller: on a hybrid machine version 2 is mounted in another
 * place.
 */
const CGROUP = fs.existsSync('/sys/fs/cgroup/cgroup.controllers') ? 2 : 1

/** This machine, to which the other platforms are compared. @type {import('./run').Platform} */
const glibc = {
  title: `Linux ${process.arch}, glibc, cgroup v${CGROUP}`,
  missing: () => process.platform === 'linux' ? undefined : 'it needs Linux',
  nodes: NODES,
  cases: () => NODES.map(version => {
    const place = { node: fetchNode(version), root: ROOT, wrap: (/** @type {string[]} */ w) => w }
    return {
      title: 'the agent alone reports all values of this Node.js',
      node: version,
      async test () {
        const { hello, known } = await tellFacts(place)
        assert.deepStrictEqual([hello.libc, hello.allocator], ['glibc', 'glibc'])
        return known
      }
    }
  })
}

module.exports = { glibc, ROOT, NODES }
