'use strict'

/**
 * Kind of owner of a piece of code. app: written by those who run it; dependency: below
 * node_modules; node: of Node.js itself; native: no JavaScript, also WebAssembly.
 * @typedef {'app' | 'dependency' | 'node' | 'native'} Origin
 */

/** @param {string} file name of a script */
const isWebAssembly = file => file.startsWith('wasm:')

/** A folder of packages, with the name of a package. The last one in a path counts. */
const PACKAGE = /(?:^|[\\/])node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)(?=[\\/])/g

/**
 * @param {string} file name of the script: a path, a file: URL or node:…; empty without one
 * @returns {Origin}
 */
function originOf (file) {
  if (file === '' || isWebAssembly(file)) return 'native'
  if (file.startsWith('node:')) return 'node'
  return /(^|[\\/])node_modules[\\/]/.test(file) ? 'dependency' : 'app'
}

/**
 * The innermost package of node_modules that a file belongs to. pnpm's store and Yarn's archives
 * have a node_modules folder of their own before the name.
 * @param {string} file
 * @returns {string | null} such as yaml or @scope/name; null for files of the app and of Node.js
 */
function packageOf (file) {
  const names = [...file.matchAll(PACKAGE)]
    .map(([, name]) => name.replace('\\', '/'))
    // Names such as .pnpm and .cache are folders of tools, not packages.
    .filter(name => !name.startsWith('.'))
  return names.at(-1) ?? null
}

/**
 * Name of a file's owner, for a list by package.
 * @param {string} file
 * @param {string} app name of the app
 * @returns {string} node for Node.js itself
 */
const nameOwner = (file, app) => {
  const origin = originOf(file)
  return packageOf(file) ?? (origin === 'node' ? 'node' : origin === 'native' ? 'native code' : app)
}

module.exports = { isWebAssembly, originOf, packageOf, nameOwner }
