'use strict'

/**
 * The binary of the package `@memwatch/allocator`, without its index.js, which would take another
 * half of a millisecond at preload. It is no literal: a bundler would want to take the addon in.
 */
const ADDON = `@memwatch/allocator/prebuilt/${process.platform}-${process.arch}.node`
/** Its code where the permission model or --no-addons closes the door to native code. */
const ADDONS_DISABLED = 'ERR_DLOPEN_DISABLED'

/**
 * @returns {typeof import('@memwatch/allocator')}
 * @throws {NodeJS.ErrnoException} MODULE_NOT_FOUND where it is not installed, or has no binary for
 *   this platform; ADDONS_DISABLED
 */
const loadAddon = () => require(ADDON)

/** @returns {string | undefined} its file, undefined where it is not installed */
function locateAddon () {
  try {
    return require.resolve(ADDON)
  } catch {
    return undefined
  }
}

module.exports = { loadAddon, locateAddon, ADDONS_DISABLED }
