'use strict'

/** @type {() => void} */
let action = () => process.exit(0)

/**
 * Ends at once on SIGTERM or SIGINT, until a command has its own handlers. The first process of a
 * container gets only signals that it listens for: without this a pod whose app ends before its
 * sidecar has started would wait until Kubernetes kills it.
 */
function endWhenAsked () {
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => action())
}

/**
 * The listeners stay, as a signal in a moment without any would be lost.
 * @param {() => void} stop replaces the immediate end, once
 */
function stopWhenAsked (stop) {
  action = () => {
    action = () => {}
    stop()
  }
}

module.exports = { endWhenAsked, stopWhenAsked }
