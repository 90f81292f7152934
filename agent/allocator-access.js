'use strict'

const { ADDONS_DISABLED, loadAddon } = require('./addon')
const { debug } = require('./guard')
const { loadedAllocator } = require('./protocol/allocators')
const { readFileSync } = require('./primordials')

/**
 * Access to malloc, with the operator's permission: by the Node-API addon @memwatch/allocator, else
 * by node:ffi, which warns once on stderr that it is experimental.
 *
 * @typedef {object} AllocatorAccess
 * @property {'addon' | 'ffi'} by
 * @property {() => import('@memwatch/allocator').AllocatorStatistics} readStatistics takes about
 *   5 ns for each free chunk: milliseconds after much churn
 * @property {() => boolean} trim returns free memory to the system, blocking; false: malloc has no
 *   such call
 */

/**
 * @returns {AllocatorAccess | 'disabled' | undefined} disabled: Node.js forbids native code, and
 *   node:ffi is native code, too
 */
function byAddon () {
  try {
    const { readStatistics, trim } = loadAddon()
    return { by: 'addon', readStatistics, trim }
  } catch (error) {
    debug('@memwatch/allocator: %s', error)
    if (/** @type {NodeJS.ErrnoException} */ (error).code === ADDONS_DISABLED) return 'disabled'
  }
}

/** Access by node:ffi, to glibc's functions only. @returns {AllocatorAccess | undefined} */
function byForeignFunctions () {
  /** @type {any} */
  let ffi
  try {
    // glibc's functions exist beside another allocator, but then report nothing.
    if (loadedAllocator(readFileSync('/proc/self/maps', 'latin1')).allocator !== 'glibc') {
      return undefined
    }
    ffi = require('node:' + 'ffi') // joined: the types of older Nodes lack this module
    const { functions } = ffi.dlopen(null, {
      open_memstream: { arguments: ['pointer', 'pointer'], return: 'pointer' },
      malloc_info: { arguments: ['i32', 'pointer'], return: 'i32' },
      fclose: { arguments: ['pointer'], return: 'i32' },
      free: { arguments: ['pointer'], return: 'void' },
      malloc_trim: { arguments: ['u64'], return: 'i32' }
    })
    const text = Buffer.alloc(8)
    const length = Buffer.alloc(8)
    return {
      by: 'ffi',
      readStatistics () {
        const stream = functions.open_memstream(text, length)
        functions.malloc_info(0, stream)
        functions.fclose(stream)
        const at = text.readBigUInt64LE(0)
        try {
          return { allocator: 'glibc', mallocInfo: ffi.toString(at) }
        } finally {
          functions.free(at)
        }
      },
      trim () {
        functions.malloc_trim(0n)
        return true
      }
    }
  } catch (error) {
    debug('node:ffi: %s', error)
  }
}

/** @returns {AllocatorAccess | undefined} undefined: no access */
const allocatorAccess = () => {
  const addon = byAddon()
  return addon === 'disabled' ? undefined : addon ?? byForeignFunctions()
}

module.exports = { allocatorAccess }
