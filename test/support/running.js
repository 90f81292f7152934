'use strict'

/**
 * Exporters that tests of this file have started and not stopped. An exporter left behind by a
 * failed test would keep jest alive.
 * @type {Set<{ stop: () => Promise<void> }>}
 */
const running = new Set()

module.exports = { running }
