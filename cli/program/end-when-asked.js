'use strict'

/** @type {() => void} */
let action = () => process.exit(0)

/**
 * Ends at once on SIGTERM or SIGINT, until a command has its own handlers. The first process of a
 * container gets only signals that it listens for. If an app ends before its sidecar has started,
 * the pod would otherwise wait until Kubernetes kills the sidecar.
 */
function endWhenAsked () {
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => action())
}

/**
 * Replaces the immediate end by another handler. The listeners stay registered, because a signal at
 * a moment without listeners would be lost.
 * @param {() => void} stop called once, instead of the immediate end
 */
function stopWhenAsked (stop) {
  action = () => {
    action = () => {}
    stop()
  }
}

module.exports = { endWhenAsked, stopWhenAsked }
