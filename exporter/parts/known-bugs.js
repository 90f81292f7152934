'use strict'

const { findCase } = require('@memwatch/engine/verdicts/case')

/**
 * Reads the installed versions of packages with known bugs once a target has a finding, so that its
 * verdict can name the bugs of these versions.
 */
class KnownBugsPart {
  name = 'known bugs'
  /** @type {WeakSet<import('@memwatch/engine/history/target').Target>} */
  #read = new WeakSet()

  /** @param {import('../exporter').Exporter} exporter */
  start (exporter) {
    exporter.on('verdict', (target, { state, opportunity }) => {
      const isFound = !opportunity && (state === 'suspected' || state === 'confirmed')
      // An overloaded exporter reads no files.
      if (!isFound || this.#read.has(target) || exporter.load.level > 0) return
      this.#read.add(target)
      // The reader of files is loaded with the first finding: most exporters never need it.
      const { readInstalledPackages } = require('../captures/installed-packages')
      findCase(target).packages = readInstalledPackages(target.hello) ?? new Map()
    })
  }
}

module.exports = { KnownBugsPart }
