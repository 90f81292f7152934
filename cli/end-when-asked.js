'use strict'

/** @type {() => void} */
let action = () => process.exit(0)

/**
 * Ends at once on SIGTERM or SIGINT, until something better is there. The first process of a
 * container gets no signal that it does not listen for: a pod that is over before its sidecar has
 * started would wait for it until both are killed.
 */
function endWhenAsked () {
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => action())
}

/**
 * The listeners stay: a signal in a moment without any would be lost.
 * @param {() => void} stop replaces the immediate end, once
 */
function stopWhenAsked (stop) {
  action = () => {
    action = () => {}
    stop()
  }
}

module.exports = { endWhenAsked, stopWhenAsked }
