'use strict'

const { gzipSync } = require('node:zlib')
const {
  Function: PprofFunction,
  Line,
  Location,
  Profile,
  Sample,
  StringTable,
  ValueType
} = require('pprof-format')
const { nameOf, pathOf } = require('./call-frames')

/** @typedef {{ callFrame: import('./call-frames').CallFrame }} Framed */

/**
 * Converts a profile of the DevTools protocol to the format of pprof, Pyroscope and Parca:
 * profile.proto, compressed.
 * @param {import('./kinds').KindName} kind cpu_profile, heap_profile or allocation_profile
 * @param {any} profile of the DevTools protocol
 * @param {{ atUnixMs: number, seconds: number }} taken
 * @returns {Buffer}
 */
function toPprof (kind, profile, { atUnixMs, seconds }) {
  const strings = new StringTable()
  const places = new Places(strings)
  const isCpu = kind === 'cpu_profile'
  const samples = isCpu ? cpuSamples(profile) : heapSamples(profile.head)
  const type = isCpu
    ? ['cpu', 'nanoseconds']
    : [kind === 'heap_profile' ? 'inuse_space' : 'alloc_space', 'bytes']
  const [name, unit] = type.map(text => strings.dedup(text))
  return gzipSync(
    new Profile({
      sampleType: [new ValueType({ type: name, unit })],
      sample: samples.map(
        ({ stack, value }) =>
          new Sample({
            locationId: stack.map(frame => places.of(frame.callFrame)),
            value: [Math.round(value)]
          })
      ),
      location: places.locations,
      function: places.functions,
      stringTable: strings,
      timeNanos: BigInt(atUnixMs) * 1_000_000n,
      durationNanos: BigInt(Math.round(seconds * 1e9))
    }).encode()
  )
}

/** Functions and locations, each once. */
class Places {
  #strings
  /** @type {Map<string, number>} */
  #ids = new Map()
  /** @type {InstanceType<typeof Location>[]} */
  locations = []
  /** @type {InstanceType<typeof PprofFunction>[]} */
  functions = []

  /** @param {InstanceType<typeof StringTable>} strings */
  constructor (strings) {
    this.#strings = strings
  }

  /**
   * @param {import('./call-frames').CallFrame} frame
   * @returns {number} id of the frame's location
   */
  of (frame) {
    const key = `${frame.url}:${frame.lineNumber}:${frame.columnNumber}:${frame.functionName}`
    let id = this.#ids.get(key)
    if (id === undefined) {
      id = this.locations.length + 1
      this.#ids.set(key, id)
      const [name, filename] = [nameOf(frame), pathOf(frame.url)].map(text =>
        this.#strings.dedup(text)
      )
      const line = Math.max(0, frame.lineNumber + 1)
      this.functions.push(
        new PprofFunction({ id, name, systemName: name, filename, startLine: line })
      )
      this.locations.push(new Location({ id, line: [new Line({ functionId: id, line })] }))
    }
    return id
  }
}

/**
 * @param {import('./heap-sites').HeapNode} head
 * @returns {{ stack: Framed[], value: number }[]} samples in bytes; the innermost frame comes first
 */
function heapSamples (head) {
  /** @type {{ stack: Framed[], value: number }[]} */
  const samples = []
  /** @type {{ node: import('./heap-sites').HeapNode, stack: Framed[] }[]} */
  const open = head.children.map(node => ({ node, stack: [node] }))
  for (let next = open.pop(); next; next = open.pop()) {
    const { node, stack } = next
    if (node.selfSize > 0) samples.push({ stack, value: node.selfSize })
    for (const child of node.children) open.push({ node: child, stack: [child, ...stack] })
  }
  return samples
}

/**
 * @param {import('./cpu-suspects').CpuProfile} profile
 * @returns {{ stack: Framed[], value: number }[]} samples in nanoseconds, without idle time
 */
function cpuSamples ({ nodes, samples, timeDeltas }) {
  const byId = new Map(nodes.map(node => [node.id, node]))
  for (const node of nodes) for (const child of node.children ?? []) /** @type {import('./cpu-suspects').CpuNode} */ (byId.get(child)).parent = node.id
  /** @type {Map<number, number>} */
  const nanoseconds = new Map()
  samples.forEach((id, i) =>
    nanoseconds.set(id, (nanoseconds.get(id) ?? 0) + 1000 * Math.max(0, timeDeltas[i + 1] ?? 0))
  )
  return [...nanoseconds].flatMap(([id, value]) => {
    /** @type {Framed[]} */
    const stack = []
    for (let node = byId.get(id); node?.parent !== undefined; node = byId.get(node.parent)) {
      stack.push(node)
    }
    return stack.length === 0 || stack[0].callFrame.functionName === '(idle)'
      ? []
      : [{ stack, value }]
  })
}

module.exports = { toPprof }
