'use strict'

const { Readable } = require('node:stream')
const { readPieces } = require('../../agent/capture/heap-snapshot')
const { NODES, spawnBounded, versionOf } = require('../support/agent-collector')

const PIECE_BYTES = 65_536

describe('the stream of a heap snapshot', () => {
  /**
   * All data is there at once and no 'close' event follows, as in Node before 20.19.5, 22.18 and
   * 24.4.
   */
  const stream = () => new Readable({
    read () {
      for (let i = 0; i < 10; i++) this.push(Buffer.alloc(PIECE_BYTES - 1, i))
      this.push(null)
    },
    destroy () {}
  })

  it('is read to its end in pieces, even if it never emits close', async () => {
    const pieces = []
    for await (const piece of readPieces(stream())) pieces.push(piece)
    expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThanOrEqual(PIECE_BYTES)
    expect(
      Buffer.concat(pieces).equals(
        Buffer.concat(Array.from({ length: 10 }, (_, i) => Buffer.alloc(PIECE_BYTES - 1, i)))
      )
    ).toBe(true)
  })
  it('ends when its reader stops', async () => {
    const left = stream()
    for await (const piece of readPieces(left)) if (piece) break
    expect(left.destroyed).toBe(true)
  })
  it('rejects if it ends too early', async () => {
    const broken = new Readable({ read () { this.destroy(new Error('no memory')) } })
    await expect(readPieces(broken).next()).rejects.toThrow('no memory')
  })
})

/**
 * Output of a program, as JSON.
 * @param {string} node
 * @param {string} code
 * @returns {Promise<any>}
 */
async function printed (node, code) {
  const { stdout, stderr } = await spawnBounded(node, ['-e', code], { cwd: __dirname }).ended
  expect(stderr).toBe('')
  return JSON.parse(stdout)
}

describe.each(NODES.map(node => [versionOf(node), node]))('on Node %s', (_, node) => {
  it('a heap snapshot is read to its end', async () => {
    const { most, nodes } = await printed(
      node,
      `
      const { readPieces } = require('../../agent/capture/heap-snapshot')
      const pieces = []
      async function read () { for await (const piece of readPieces(require('v8').getHeapSnapshot())) pieces.push(piece) }
      read().then(() => console.log(JSON.stringify({ most: Math.max(...pieces.map(({ length }) => length)), nodes: JSON.parse(Buffer.concat(pieces)).snapshot.node_count })))
    `
    )
    expect(most).toBeLessThanOrEqual(PIECE_BYTES)
    expect(nodes).toBeGreaterThan(1000)
  })

  it('a heap profile with short intervals ends early in an app that allocates much', async () => {
    const { waited, parts } = await printed(
      node,
      `
      const { heapProfile } = require('../../agent/capture/heap-profile')
      let gcs = 0
      let waited = 0
      const tools = { gcs: () => gcs, wait: async seconds => { waited += seconds; gcs += 1e6 } }
      async function profile () {
        const parts = []
        for await (const { part } of heapProfile({ kind: 'heap_profile', seconds: 30, intervalBytes: 8192 }, tools)) parts.push(part)
        console.log(JSON.stringify({ waited, parts }))
      }
      profile()
    `
    )
    expect({ waited, parts }).toEqual({ waited: 0.5, parts: ['before', 'profile'] })
  })

  it('a heap profile excludes the allocations of the capture itself', async () => {
    const readings = await printed(
      node,
      `
      const running = require('../../agent/capture/profilers').startHeapProfile({ intervalBytes: 512, collected: false })
      const bytes = node => node.selfSize + node.children.reduce((sum, child) => sum + bytes(child), 0)
      const kept = []
      function keep () { for (let i = 0; i < 1000; i++) kept.push({ i, text: ['row ' + i] }) }
      const texts = Array.from({ length: 20 }, () => running.read())
      keep()
      texts.push(running.stop())
      console.log(JSON.stringify(texts.map(JSON.parse).map(({ head, samples }) => ({ bytes: bytes(head), names: JSON.stringify(head).match(/keep|profilers\\.js/g), samples: samples.map(({ nodeId }) => nodeId), ids: JSON.stringify(head).match(/"id":\\d+/g).map(text => Number(text.slice(5))) }))))
    `
    )
    const [first, last] = [readings[0], readings[19]]
    // A reading of an almost empty profile takes at least a kilobyte.
    expect(last.bytes).toBeLessThan(first.bytes + 8192)
    expect(readings[20].names).toEqual(['keep'])
    expect(readings[20].bytes).toBeGreaterThan(last.bytes + 50_000)
    for (const { samples, ids } of readings) expect(ids).toEqual(expect.arrayContaining(samples))
  })

  it('a CPU profile of a regular expression with a backslash is JSON', async () => {
    const names = await printed(
      node,
      `
      const running = require('../../agent/capture/profilers').startCpuProfile()
      const slow = /^(a+)+\\.\\d"$/
      for (const end = Date.now() + 500; Date.now() < end;) slow.test('a'.repeat(20) + '!')
      const { nodes } = JSON.parse(running.stop())
      console.log(JSON.stringify(nodes.map(({ callFrame }) => callFrame.functionName)))
    `
    )
    expect(names).toContain('RegExp: ^(a+)+\\.\\d"$')
  })
})
