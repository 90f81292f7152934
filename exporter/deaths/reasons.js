'use strict'

/**
 * Why a process is gone. Each is a label value of memwatch_target_exits_total.
 *
 * @typedef {object} Reason
 * @property {string} title
 * @property {string} known from what
 * @property {boolean} counted from 0 on for every target, so that its first time is an increase an
 *   alert can see
 */

const reasons = Object.freeze({
  oom_kill: {
    title: 'killed by the kernel for memory',
    known:
      'the count of such kills in its cgroup rose; where that cannot be seen, memory was at the ' +
        'limit of the container, or reached it at the pace of the last seconds',
    counted: true
  },
  heap_oom: {
    title: 'V8 ran out of heap',
    known:
      'SIGABRT, or no signal that could be seen, with the heap near its limit, or rising ' +
        'steeply, or RSS rising by what the heap had left while the loop stood still',
    counted: true
  },
  crash: {
    title: 'crashed by a signal of its own doing',
    known: 'SIGSEGV, SIGABRT, SIGBUS and the like, the heap far from its limit',
    counted: true
  },
  killed: {
    title: 'killed by someone’s signal',
    known: 'SIGTERM without a handler, SIGKILL with memory far from any limit',
    counted: false
  },
  signal: {
    title: 'ended by a signal, which one could not be seen',
    known: 'its connection ended without a goodbye, memory far from any limit',
    counted: true
  },
  hung: {
    title: 'hung, and was killed for it',
    known: 'silent for ten seconds before, and neither limit was near',
    counted: true
  },
  error: {
    title: 'ended itself with an error',
    known: 'its goodbye: exit code 1 of an uncaught exception, or another',
    counted: true
  },
  clean: {
    title: 'ended itself',
    known: 'its goodbye: exit code 0, or 130 and 143 of a handler of SIGINT and SIGTERM',
    counted: false
  },
  restarted: {
    title: 'replaced while no exporter was looking',
    known: 'another process of its name was there when the exporter was back',
    counted: false
  },
  lost: {
    title: 'its machine or the network to it is gone',
    known: 'the connection timed out',
    counted: false
  },
  unknown: {
    title: 'gone while no exporter was looking',
    known: 'it did not come back after the exporter did',
    counted: false
  }
})

/** @typedef {keyof typeof reasons} ReasonName */

module.exports = { reasons }
