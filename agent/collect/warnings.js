'use strict'

/**
 * Warnings of emitters with more listeners than they expect, one for each emitter and event. A
 * listener does not prevent Node.js from printing the warning.
 *
 * @param {(what: string, work: (...args: any[]) => void) => (...args: any[]) => void} guarded
 * @returns {import('./collector').Collector}
 */
function warnings (guarded) {
  let listenerWarnings = 0
  const count = guarded('warning', (/** @type {Error} */ warning) => {
    if (warning?.name === 'MaxListenersExceededWarning') listenerWarnings++
  })
  return {
    fields: ['listenerWarnings'],
    start () {
      process.on('warning', count)
    },
    read (values) {
      values.listenerWarnings = listenerWarnings
    },
    stop () {
      process.removeListener('warning', count)
    }
  }
}

module.exports = { warnings }
