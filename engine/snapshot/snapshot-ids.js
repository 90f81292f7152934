'use strict'

const { SnapshotError } = require('./snapshot-error')
const { SnapshotScanner } = require('./snapshot-scanner')

/** Factor of the id in a key: the type is the lowest byte. */
const TYPES = 256
const BYTES_PER_NODE = 8
/** Least share of common ids with the same type, for two snapshots to be of one process. */
const LEAST_ALIKE = 0.9
/** Least number of common ids: with fewer the comparison decides nothing. */
const LEAST_SHARED = 1000

/**
 * The objects of an earlier snapshot, by their ids. V8 gives each object a permanent id, and newer
 * objects higher ids (HeapObjectsMap in src/profiler/heap-snapshot-generator.h).
 */
class SnapshotIds {
  #keys

  /** @param {Float64Array} keys id × 256 + type, ascending */
  constructor (keys) {
    this.#keys = keys
  }

  /**
   * @param {number} id
   * @returns {number} type of the object; -1 if there is none
   */
  typeOf (id) {
    let low = 0
    let high = this.#keys.length - 1
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if (this.#keys[middle] < (id + 1) * TYPES) low = middle
      else high = middle - 1
    }
    const key = this.#keys[low] ?? -1
    return Math.floor(key / TYPES) === id ? key % TYPES : -1
  }

  /**
   * @param {import('./heap-graph').HeapGraph} graph of the later snapshot
   * @returns {(id: number) => boolean} function that tells if an object is new
   * @throws {SnapshotError} if the snapshots are of different processes
   */
  compare ({ nodeCount, nodeId, nodeType }) {
    let shared = 0
    let alike = 0
    for (let n = 0; n < nodeCount; n++) {
      const type = this.typeOf(nodeId[n])
      if (type < 0) continue
      shared++
      if (type === nodeType[n]) alike++
    }
    if (shared < LEAST_SHARED || alike < shared * LEAST_ALIKE) {
      throw new SnapshotError(
        'other_process',
        `the two snapshots are from different processes: only ${alike} of ${shared} objects with ` +
          'equal ids are similar'
      )
    }
    return id => this.typeOf(id) < 0
  }
}

/** Reads only the ids and types from a snapshot. */
class SnapshotIdsReader {
  #scanner
  #keys = new Float64Array(0)
  #count = 0

  /** @param {{ allowedBytes: number }} options allowedBytes: memory that the ids may take */
  constructor ({ allowedBytes }) {
    let fields = 0
    let idField = 0
    let typeField = 0
    let at = 0
    let type = 0
    let id = 0
    this.#scanner = new SnapshotScanner({
      header: ({ nodeCount, nodeFields, node }) => {
        const predictedBytes = nodeCount * BYTES_PER_NODE
        if (predictedBytes > allowedBytes) {
          throw new SnapshotError('too_large', `${nodeCount} nodes need more memory than allowed`, {
            predictedBytes,
            allowedBytes
          })
        }
        this.#keys = new Float64Array(nodeCount)
        fields = nodeFields
        idField = node.id
        typeField = node.type
      },
      numbers: (section, values, count) => {
        if (section !== 'nodes') return
        for (let i = 0; i < count; i++) {
          if (at === idField) id = values[i]
          if (at === typeField) type = values[i]
          if (++at < fields) continue
          at = 0
          if (this.#count < this.#keys.length) this.#keys[this.#count++] = id * TYPES + type
        }
      },
      string: () => {}
    })
  }

  /**
   * @param {Buffer} chunk
   * @throws {SnapshotError}
   */
  write (chunk) {
    this.#scanner.write(chunk)
  }

  /**
   * @returns {SnapshotIds}
   * @throws {SnapshotError} if the file breaks off
   */
  end () {
    this.#scanner.end()
    return new SnapshotIds(this.#keys.subarray(0, this.#count).sort())
  }
}

module.exports = { SnapshotIdsReader, SnapshotIds }
