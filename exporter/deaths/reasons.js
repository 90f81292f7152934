'use strict'

/**
 * Causes of an end. Each is a label value of memwatch_target_exits_total.
 *
 * @typedef {object} Reason
 * @property {string} title
 * @property {string} known evidence of the cause
 * @property {boolean} counted true if every target has a count that begins at 0, so that an alert
 *   sees the first such death as an increase
 */

const reasons = Object.freeze({
  oom_kill: {
    title: 'killed by the kernel for memory',
    known:
      'the OOM kill counter of the cgroup rose. If the exporter cannot read it: memory was at the ' +
        "container's limit, or would have reached it soon at the rate of the last seconds",
    counted: true
  },
  heap_oom: {
    title: 'V8 ran out of heap',
    known:
      'SIGABRT, or an unknown signal, in one of these situations: the heap was near its limit, ' +
        'would have reached it within ten seconds, or rose steeply; or RSS rose by the free part ' +
        'of the heap limit while the event loop was blocked',
    counted: true
  },
  crash: {
    title: 'crashed with a signal',
    known: 'SIGSEGV, SIGABRT, SIGBUS or similar, with the heap far from its limit',
    counted: true
  },
  killed: {
    title: 'killed by a signal',
    known: 'SIGTERM without a handler, SIGKILL with memory far from any limit',
    counted: false
  },
  signal: {
    title: 'ended by an unknown signal',
    known: 'the connection ended without a goodbye, with memory far from any limit',
    counted: true
  },
  hung: {
    title: 'hung, then killed',
    known: 'silence of ten seconds before the end, with memory far from any limit',
    counted: true
  },
  error: {
    title: 'exited with an error',
    known: 'the exit code in the goodbye: 1 after an uncaught exception, or another code above 0',
    counted: true
  },
  clean: {
    title: 'exited normally',
    known: 'the exit code in the goodbye: 0, or 130 and 143 from handlers of SIGINT and SIGTERM',
    counted: false
  },
  restarted: {
    title: 'replaced while the exporter was away',
    known: 'when the exporter was back, another process had the same name',
    counted: false
  },
  lost: {
    title: 'lost: its machine or the network failed',
    known: 'the connection timed out',
    counted: false
  },
  unknown: {
    title: 'ended while the exporter was away',
    known: 'the process did not reconnect when the exporter was back',
    counted: false
  }
})

/** @typedef {keyof typeof reasons} ReasonName */

module.exports = { reasons }
