'use strict'

/**
 * Binary of `@memwatch/allocator`. Its index.js would add half a millisecond to the preload. A
 * bundler would include the addon if the name were a literal.
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
