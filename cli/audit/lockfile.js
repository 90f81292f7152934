'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { readRegularFile } = require('@memwatch/exporter/data-folder/regular-file')
const { parseBounded } = require('@memwatch/exporter/data-folder/bounded-json')
const { UsageError } = require('../program/usage-error')

/** Size limit of a lockfile; the largest ones of public projects have about 5 MB. */
const MOST_BYTES = 64 * 2 ** 20
/** Upper bound of the depth of the nested package trees in version 1 lockfiles. */
const MOST_DEPTH = 200

/** Lockfiles by name, in the order in which a folder is searched. */
const FORMATS = Object.freeze(/** @type {Record<string, (text: string) => Package[]>} */ ({
  'package-lock.json': readNpm,
  'npm-shrinkwrap.json': readNpm,
  'pnpm-lock.yaml': readPnpm,
  'yarn.lock': readYarn,
  'node_modules/.package-lock.json': readNpm
}))
const NAMES = Object.keys(FORMATS).map(name => path.basename(name))

/** @typedef {{ name: string, version: string }} Package */

/**
 * Reads the packages that a lockfile installs.
 * @param {string} where path of a lockfile, or of a folder that contains one
 * @returns {{ file: string, packages: Map<string, string[]> }} versions by name
 * @throws {UsageError} if there is no lockfile, or if it is unreadable
 */
function readLockfile (where) {
  const file = findLockfile(where)
  const read = FORMATS[path.basename(file)] ?? FORMATS[`node_modules/${path.basename(file)}`]
  if (!read) {
    throw new UsageError(`${file}: expected a lockfile: ${NAMES.join(', ')}`)
  }
  try {
    const bytes = readRegularFile(fs.realpathSync(file), { maxBytes: MOST_BYTES })
    return { file, packages: byName(read(bytes.toString('utf8').replaceAll('\r\n', '\n'))) }
  } catch (error) {
    throw new UsageError(`cannot read ${file}: ${/** @type {Error} */ (error).message}`)
  }
}

/**
 * @param {string} where
 * @returns {string} path of a lockfile
 * @throws {UsageError}
 */
function findLockfile (where) {
  if (!fs.statSync(where).isDirectory()) return where
  const found = Object.keys(FORMATS)
    .map(name => path.join(where, name))
    .find(file => fs.existsSync(file))
  if (found !== undefined) return found
  throw new UsageError(
    `${where}: has no lockfile; name one, such as package-lock.json, or the target of an exporter`
  )
}

/**
 * @param {Package[]} packages
 * @returns {Map<string, string[]>} versions by name
 */
function byName (packages) {
  /** @type {Map<string, Set<string>>} */
  const versions = new Map()
  for (const { name, version } of packages) {
    versions.set(name, (versions.get(name) ?? new Set()).add(version))
  }
  return new Map([...versions].map(([name, all]) => [name, [...all]]))
}

/**
 * Reads package-lock.json of npm 5 and later. It lists `packages` by path; before npm 7, it has
 * `dependencies` as a tree.
 * @param {string} text
 * @returns {Package[]}
 * @throws {Error} if the text is not such a lockfile
 */
function readNpm (text) {
  const { packages, dependencies } = parseBounded(text) ?? {}
  if (isRecord(packages)) {
    return Object.entries(packages).flatMap(([at, entry]) => {
      const place = at.lastIndexOf('node_modules/')
      const { name = at.slice(place + 'node_modules/'.length), version } = entry ?? {}
      return place < 0 ? [] : packageOf(name, version)
    })
  }
  if (isRecord(dependencies)) return readNpmTree(dependencies, 0)
  throw new Error("it has neither packages nor dependencies in npm's format")
}

/**
 * @param {Record<string, any>} dependencies
 * @param {number} depth
 * @returns {Package[]}
 */
function readNpmTree (dependencies, depth) {
  if (depth > MOST_DEPTH) throw new Error(`packages are nested deeper than ${MOST_DEPTH} levels`)
  return Object.entries(dependencies).flatMap(([name, entry]) => {
    const { version, dependencies: own } = entry ?? {}
    // An alias contains the name of its package in its version.
    const [, alias, aliased] = /^npm:(.+)@([^@]+)$/.exec(version) ?? []
    return [
      ...packageOf(alias ?? name, aliased ?? version),
      ...isRecord(own) ? readNpmTree(own, depth + 1) : []
    ]
  })
}

/**
 * Reads pnpm-lock.yaml. The keys of `packages` are name@version, /name@version or /name/version,
 * followed by peers in parentheses or after an underscore.
 * @param {string} text
 * @returns {Package[]}
 * @throws {Error} if the text is not such a lockfile
 */
function readPnpm (text) {
  if (!/^lockfileVersion:/m.test(text)) throw new Error('it has no lockfileVersion')
  const [, section = ''] = /^packages:\s*$([\s\S]*?)(?=^\S|(?![\s\S]))/m.exec(text) ?? []
  return [...section.matchAll(/^ {2}'?\/?((?:@[^/\s']+\/)?[^@/\s']+)[@/]([^\s'():_/]+)[^\n]*:\s*$/gm)]
    .flatMap(([, name, version]) => packageOf(name, version))
}

/**
 * Reads yarn.lock of Yarn 1 and later. Each of its blocks begins with the requested ranges.
 * @param {string} text
 * @returns {Package[]}
 * @throws {Error} if the text is not such a lockfile
 */
function readYarn (text) {
  if (!/^# yarn lockfile v1|^__metadata:/m.test(text)) {
    throw new Error('it lacks the header of ' +
    'Yarn')
  }
  const blocks = text.matchAll(/^"?((?:@[^/\s"]+\/)?[^@/\s"]+)@([^\n]*):\n((?: {2}[^\n]*\n)*)/gm)
  return [...blocks].flatMap(([, asked, range, body]) => {
    const [, version] = /^ {2}version:? "?([^"\s]+)"?$/m.exec(body) ?? []
    const [, alias] = /^npm:((?:@[^/\s]+\/)?[^@/\s"]+)@/.exec(range) ?? []
    return packageOf(alias ?? asked, version)
  })
}

/**
 * @param {unknown} name
 * @param {unknown} version
 * @returns {Package[]} a list with the package; empty if name or version is not a text
 */
const packageOf = (name, version) =>
  typeof name === 'string' && typeof version === 'string' ? [{ name, version }] : []

/**
 * @param {unknown} value
 * @returns {value is Record<string, any>}
 */
const isRecord = value => typeof value === 'object' && value !== null && !Array.isArray(value)

module.exports = { readLockfile, readNpm, readPnpm, readYarn }
