'use strict'

/**
 * Exporters that tests of this file have started and not stopped. One that a failed test leaves
 * behind would keep its jest alive.
 * @type {Set<{ stop: () => Promise<void> }>}
 */
const running = new Set()

module.exports = { running }
