'use strict'

/**
 * Warnings of Node that tell of things that pile up: an emitter says once that it has more
 * listeners than it expects. Listening to `warning` changes nothing: Node prints them all the same.
 *
 * @param {(what: string, work: (...args: any[]) => void) => (...args: any[]) => void} guarded
 * @returns {import('./collector').Collector}
 */
function warnings (guarded) {
  let listenerWarnings = 0
  const take = guarded('warning', (/** @type {Error} */ warning) => {
    if (warning?.name === 'MaxListenersExceededWarning') listenerWarnings++
  })
  return {
    fields: ['listenerWarnings'],
    start () {
      process.on('warning', take)
    },
    read (values) {
      values.listenerWarnings = listenerWarnings
    },
    stop () {
      process.removeListener('warning', take)
    }
  }
}

module.exports = { warnings }
