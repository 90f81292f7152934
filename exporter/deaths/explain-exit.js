'use strict'

const os = require('node:os')
const { formatBytes, formatSeconds } = require('@memwatch/engine/text/format')
const { LOOK_FURTHER } = require('./advise')

/** Shells, and programs started by them, report 128 + N for a child that signal N ended. */
const SIGNAL_CODES = 128
/**
 * A process that never reported has grown if its RSS rose by this much: Node.js starts with 40 MiB.
 */
const GREW_BYTES = 64 * 2 ** 20

/** Signals that a process causes by its own crash. */
const CRASHES = ['SIGSEGV', 'SIGBUS', 'SIGILL', 'SIGFPE', 'SIGTRAP']

/**
 * @typedef {object} Ending end of a command whose processes never reported
 * @property {import('./reasons').ReasonName} reason
 * @property {'certain' | 'likely' | 'possible'} sure
 * @property {string} text cause, in one or two sentences
 * @property {string | null} advice advice for further investigation
 * @property {import('@memwatch/engine/verdicts/holders').Holders | null} [holders] holders of piles
 *   in a heap snapshot that V8 wrote before; null without a snapshot
 */

/**
 * Explains why a signal ended a command before any of its processes reported. Code that computes
 * without a pause never returns to the event loop, so its agent cannot report.
 * @param {object} known
 * @param {{ code: number | null, signal: string | null }} known.exit exit of the command
 * @param {number} known.durationSeconds
 * @param {readonly { atSeconds: number, rssBytes: number }[]} [known.rss] readings of the RSS of
 *   its process, oldest first
 * @param {number} [known.oomKills] OOM kills in its cgroup during the run; undefined if unknown
 * @returns {Ending | null} null if the command ended by itself
 */
function explainExit ({ exit, durationSeconds, rss = [], oomKills }) {
  const signal = exit.signal ?? findSignal(exit.code)
  if (signal === undefined) return null
  const status = exit.signal ? '' : ` (exit status ${exit.code})`
  const began = `The command ended with ${signal}${status} after ` +
    `${formatSeconds(durationSeconds)}, before any of its processes reported. The agent needs ` +
    'the event loop: it cannot report from a program that computes from its first line on.'
  // A status of 128 + N comes from a program that started another one, and the readings are not
  // those of the other program.
  const growth = exit.signal ? sayGrowth(rss) : ''
  if (signal === 'SIGABRT') {
    const grew = growth !== '' && rss[rss.length - 1].rssBytes - rss[0].rssBytes >= GREW_BYTES
    return {
      reason: 'heap_oom',
      sure: grew ? 'likely' : 'possible',
      text: `${began}${growth} V8 aborts like this when its heap is full; stderr then shows ` +
        '"JavaScript heap out of memory".',
      advice: 'Either the app leaks, or it needs a larger heap. Raise --max-old-space-size: only ' +
        `a leak also fills the larger heap. ${LOOK_FURTHER}`
    }
  }
  if (signal === 'SIGKILL') {
    return {
      reason: oomKills ? 'oom_kill' : 'killed',
      sure: oomKills ? 'certain' : 'possible',
      text: `${began}${growth} ` +
        `${oomKills
          ? 'The kernel killed a process of its cgroup for memory ' +
          'meanwhile.'
            : oomKills === 0
            ? 'The kernel counted no kill for memory in its ' +
            'cgroup.'
              : 'The kernel may have killed it for memory: check `dmesg | grep -i "killed ' +
              'process"`.'}`,
      advice: oomKills
        ? 'Give the container more memory, or keep V8 below its limit with ' +
          '--max-old-space-size: V8 then ends it with a stack trace.'
        : null
    }
  }
  if (CRASHES.includes(signal)) {
    return {
      reason: 'crash',
      sure: 'certain',
      text: `${began}${growth} Native code crashes like this: an addon, or Node.js itself.`,
      advice:
        'Find the place with a core dump: `ulimit -c unlimited`, then `coredumpctl gdb` or `gdb node ' +
          'core`.'
    }
  }
  return { reason: 'killed', sure: 'certain', text: `${began}${growth}`, advice: null }
}

/**
 * @param {number | null} code
 * @returns {string | undefined}
 */
function findSignal (code) {
  if (code === null || code <= SIGNAL_CODES) return undefined
  return Object.entries(os.constants.signals).find(
    ([, number]) => number === code - SIGNAL_CODES
  )?.[0]
}

/** @param {readonly { atSeconds: number, rssBytes: number }[]} rss */
function sayGrowth (rss) {
  if (rss.length === 0) return ''
  const first = rss[0]
  const last = rss[rss.length - 1]
  const seconds = last.atSeconds - first.atSeconds
  const rise = last.rssBytes - first.rssBytes
  return seconds > 0 && rise >= GREW_BYTES
    ? ` Its RSS rose from ${formatBytes(first.rssBytes)} to ${formatBytes(last.rssBytes)}, by ` +
      `${formatBytes(rise / seconds)}/s, to the end.`
    : ` Its RSS was ${formatBytes(last.rssBytes)} at the end.`
}

module.exports = { explainExit }
