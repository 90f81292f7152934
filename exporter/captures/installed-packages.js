'use strict'

const { knownBugs } = require('@memwatch/engine/known-bugs/index')
const { Witness } = require('../process/witness')
const { AppFiles } = require('./app-files')

const NAMES = [...new Set(knownBugs.map(bug => bug.package))].filter(name => name !== 'node')

/**
 * Versions of the packages that known bugs are about, where the files of a target can be read: on
 * this machine, or in another container whose processes are seen. They are installed, and perhaps
 * never loaded.
 * @param {import('@memwatch/agent/protocol/frame').Hello} hello
 * @returns {Map<string, string[]> | null} by name; null where its files cannot be read
 */
function readInstalledPackages (hello) {
  try {
    if (process.platform !== 'linux' || !Witness.of(hello)) return null
    return AppFiles.of(hello.pid).installedVersions(NAMES)
  } catch {
    return null // gone, or another user's
  }
}

module.exports = { readInstalledPackages }
