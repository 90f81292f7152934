'use strict'

/** Causes of a living target's silence: label values of memwatch_target_silence_seconds. */
const silenceCauses = Object.freeze({
  loop_blocked:
    'the process computes, but its event loop does not turn: a long computation, a regular ' +
      'expression, a synchronous parse',
  waiting:
    'the process waits inside a synchronous call, such as execSync, Atomics.wait or a read from ' +
      'a slow disk',
  stopped: 'SIGSTOP or a debugger stopped the process',
  connection_lost: 'the process is alive but not connected',
  unknown:
    'the exporter cannot see the process, as over a network: one of these causes, or a failed ' +
      'machine or network'
})

/** @typedef {keyof typeof silenceCauses} SilenceCause */

module.exports = { silenceCauses }
