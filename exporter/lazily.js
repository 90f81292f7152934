'use strict'

/**
 * Delays work until its result is first needed. The parts of the exporter load the engine in this
 * way, with the first frame: on a tenth of a core, loading it takes a second, in which the app
 * behind a native sidecar would wait for its start.
 * @template Value
 * @param {() => Value} create called once
 * @returns {() => Value}
 */
function lazily (create) {
  /** @type {Value | undefined} */
  let value
  return () => (value ??= create())
}

module.exports = { lazily }
