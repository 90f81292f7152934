'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { plainText } = require('@memwatch/agent/protocol/text-rules')
const { knownBugs } = require('@memwatch/engine/known-bugs/index')
const { packageOf } = require('@memwatch/engine/text/code-owner')
const { Witness } = require('../process/witness')
const { AppFiles } = require('./app-files')

const NAMES = [...new Set(knownBugs.map(bug => bug.package))].filter(name => name !== 'node')
/** Upper bounds of named addons, and of characters in a name. */
const MOST_ADDONS = 50
const MOST_NAME_LENGTH = 214
/**
 * Beginning of the messages of mimalloc, the allocator that many addons written in Rust contain.
 */
const MIMALLOC = 'mimalloc: error: '

/** @typedef {import('@memwatch/agent/protocol/frame').Hello} Hello */

/**
 * Versions of packages with known bugs, if the files of a target are readable: on this machine, or
 * in another container with visible processes. An installed package is perhaps never loaded.
 * @param {Hello} hello
 * @returns {Map<string, string[]> | null} by name; null if its files are unreadable
 */
const readInstalledPackages = hello =>
  readFiles(hello, files => files.installedVersions(NAMES))

/**
 * Packages whose native addons a target has loaded, by its memory map.
 * @param {Hello} hello
 * @returns {{ name: string, version: string | null }[] | null} null if the map cannot be read
 */
const readLoadedAddons = hello => readFiles(hello, files => {
  const folders = new Set(findMappedAddons(hello).flatMap(file => {
    const name = packageOf(file)
    const at = file.lastIndexOf(`/node_modules/${name}/`)
    return name === null || name.length > MOST_NAME_LENGTH
      ? []
      : file.slice(0, at + `/node_modules/${name}`.length)
  }))
  return [...folders].slice(0, MOST_ADDONS).map(folder =>
    ({ name: packageOf(`${folder}/`) ?? '', version: files.packageVersion(folder) ?? null }))
})

/**
 * Loaded addons with a malloc of their own, recognised by mimalloc's messages in their files.
 * @param {Hello} hello
 * @returns {string[] | null} packages, or names of files; null if the map cannot be read
 */
const readMallocAddons = hello => readFiles(hello, files => [...new Set(
  findMappedAddons(hello)
    .filter(file => files.contains(file, MIMALLOC))
    .map(file => plainText(packageOf(file) ?? path.basename(file), MOST_NAME_LENGTH))
)])

/**
 * @param {Hello} hello
 * @returns {string[]} paths of the addons in the memory map
 */
function findMappedAddons ({ pid }) {
  const map = fs.readFileSync(`/proc/${pid}/maps`, 'utf8')
  const files = map.split('\n').filter(line => line.endsWith('.node'))
    .map(line => line.slice(line.indexOf('/')))
  return [...new Set(files)].slice(0, MOST_ADDONS)
}

/**
 * @template T
 * @param {Hello} hello
 * @param {(files: AppFiles) => T} read
 * @returns {T | null} null if the process is not visible, or its files cannot be read
 */
function readFiles (hello, read) {
  try {
    if (process.platform !== 'linux' || !Witness.of(hello)) return null
    return read(AppFiles.of(hello.pid))
  } catch {
    return null // The process is gone, or belongs to another user.
  }
}

module.exports = { readInstalledPackages, readLoadedAddons, readMallocAddons }
