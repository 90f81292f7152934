'use strict'

/**
 * Why a target that is not known to be gone says nothing: label values of
 * memwatch_target_silence_seconds.
 */
const silenceCauses = Object.freeze({
  loop_blocked:
    'it works, and its event loop does not turn: a long computation, a regular expression, a ' +
      'synchronous parse',
  waiting:
    'it neither works nor turns: a synchronous call that waits, such as execSync or ' +
      'Atomics.wait, or a disk',
  stopped: 'SIGSTOP, or a debugger',
  connection_lost: 'it lives, and is not connected',
  unknown:
    'the exporter cannot see the process, or agents come over a network: one of these, or its ' +
      'machine or the network to it is gone'
})

/** @typedef {keyof typeof silenceCauses} SilenceCause */

module.exports = { silenceCauses }
