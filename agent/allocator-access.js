'use strict'

const { ADDONS_DISABLED, loadAddon } = require('./addon')
const { debug } = require('./guard')
const { loadedAllocator } = require('./protocol/allocators')
const { readFileSync } = require('./primordials')

/**
 * The way to ask malloc itself, where the operator allowed it: the package @memwatch/allocator, a
 * Node-API addon, where it is installed, else node:ffi, where Node has it (it warns that it is
 * experimental, once, on stderr).
 *
 * @typedef {object} AllocatorAccess
 * @property {'addon' | 'ffi'} by
 * @property {() => import('@memwatch/allocator').Books} books takes about 5 ns for each free chunk:
 *   milliseconds after much churn
 * @property {() => boolean} trim gives free memory back to the system; blocks meanwhile; false:
 *   malloc has no such call
 */

/**
 * @returns {AllocatorAccess | 'disabled' | undefined} disabled: then node:ffi, native code too, is
 *   left alone
 */
function byAddon () {
  try {
    const { books, trim } = loadAddon()
    return { by: 'addon', books, trim }
  } catch (error) {
    debug('@memwatch/allocator: %s', error)
    if (/** @type {NodeJS.ErrnoException} */ (error).code === ADDONS_DISABLED) return 'disabled'
  }
}

/** Of glibc only: the others would need a function each. @returns {AllocatorAccess | undefined} */
function byForeignFunctions () {
  /** @type {any} */
  let ffi
  try {
    // Another allocator than glibc's leaves glibc's functions in place: they would tell of nothing.
    if (loadedAllocator(readFileSync('/proc/self/maps', 'latin1')).allocator !== 'glibc') {
      return undefined
    }
    ffi = require('node:' + 'ffi') // not known to the types of older Nodes
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
      books () {
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

/** @returns {AllocatorAccess | undefined} undefined where there is no way */
const allocatorAccess = () => {
  const addon = byAddon()
  return addon === 'disabled' ? undefined : addon ?? byForeignFunctions()
}

module.exports = { allocatorAccess }
