'use strict'

/**
 * Binary of `@memwatch/allocator`, loaded directly: the package's index.js would add half a
 * millisecond to the preload. The name is computed, so that bundlers do not include the file.
 */
const ADDON = `@memwatch/allocator/prebuilt/${process.platform}-${process.arch}.node`
/** Node.js throws this code under the permission model or --no-addons. */
const ADDONS_DISABLED = 'ERR_DLOPEN_DISABLED'

/**
 * @returns {typeof import('@memwatch/allocator')}
 * @throws {NodeJS.ErrnoException} MODULE_NOT_FOUND: not installed, or no binary for this platform;
 *   ADDONS_DISABLED
 */
const loadAddon = () => require(ADDON)

/** @returns {string | undefined} path; undefined: not installed */
function locateAddon () {
  try {
    return require.resolve(ADDON)
  } catch {
    return undefined
  }
}

module.exports = { loadAddon, locateAddon, ADDONS_DISABLED }
