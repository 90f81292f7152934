'use strict'

/** Causes of a living target's silence: label values of memwatch_target_silence_seconds. */
const silenceCauses = Object.freeze({
  loop_blocked:
    'synchronous work blocks the event loop: a long computation, a regular expression, or the ' +
      'parsing of a large text',
  waiting:
    'the event loop waits in a synchronous call, such as execSync, Atomics.wait or a read from ' +
      'a slow disk',
  stopped: 'SIGSTOP or a debugger stopped the process',
  connection_lost: 'the process is alive but not connected',
  unknown:
    'the exporter cannot see the process, for example over a network: the cause is one of these, ' +
      'or a failed machine or network'
})

/** @typedef {keyof typeof silenceCauses} SilenceCause */

module.exports = { silenceCauses }
