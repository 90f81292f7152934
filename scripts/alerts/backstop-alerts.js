'use strict'

const { asked, numberTemplate } = require('./rule')

/**
 * Window over which growth of a minimum is measured. In a shorter window a warm-up, or a cache that
 * fills, would look like a leak.
 */
const TREND_SECONDS = 3600
/** Time to the limit that is worth waking someone for. */
const HORIZON_SECONDS = 4 * 3600

/**
 * Time for which the alert of a death stays active: enough to read it, and for one or two restarts.
 */
const DEATH_SECONDS = 600
/** Window and number of exits from which repeated ends cause an alert. */
const LOOP = { seconds: 900, exits: 3 }
/** Sentence about the last end of a process with this name. */
const LAST_EXIT = asked(
  'memwatch_target_last_exit_timestamp_seconds{$}',
  '{{ . | first | label "text" }}',
  'Prometheus has no record of the cause.'
)

/**
 * Removes the identity labels: an ended process has none until another process has its name, and
 * the labels would change.
 * @param {ReturnType<ReturnType<typeof import('./rule').ruleMaker>['rule']>} alert
 */
const ofEnded = alert => ({
  ...alert,
  labels: { ...alert.labels, service_name: '{{ $labels.target }}' }
})

/**
 * Alerts on measured values, for processes without a verdict: the problem has no diagnosis, or the
 * exporter is too old for it. They judge only minima of memory, because a rise between two GCs that
 * ends with the next GC is no trend.
 * @param {ReturnType<typeof import('./rule').ruleMaker>} maker
 */
function backstopAlerts ({ matchers, rule, options: { graceSeconds, memoryRatio, heapRatio } }) {
  const olderThan = (/** @type {number} */ seconds) => `time() - memwatch_target_start_time_seconds${matchers()} > ${seconds}`
  const floor = `memwatch:rss_bytes:min15m${matchers()}`
  const limit = `memwatch_container_limit_bytes${matchers()}`
  return [
    rule(
      'MemwatchMemoryNearLimit',
      'critical',
      `${floor} > ${memoryRatio} * ${limit}\nand predict_linear(${floor}[1h], ` +
        `${HORIZON_SECONDS}) > ${limit}\nand ${olderThan(graceSeconds + TREND_SECONDS)}`,
      {
        summary: 'The memory of a process grows towards the limit of its container.',
        description:
          'At its present growth {{ $labels.target }} ({{ $labels.thread }}) reaches its memory ' +
            'limit within hours, and the kernel kills it. ' +
          `Now: ${[
            {
              text: 'RSS at least',
              expr: 'memwatch:rss_bytes:min15m{$}',
              format: /** @type {const} */ ('bytes')
            },
            {
              text: 'container limit',
              expr: 'memwatch_container_limit_bytes{$}',
              format: /** @type {const} */ ('bytes')
            },
            {
              text: 'growth',
              expr: 'deriv(memwatch:rss_bytes:min15m{$}[1h])',
              format: /** @type {const} */ ('bytesPerSecond')
            },
            {
              text: 'time to the limit',
              expr: 'round((memwatch_container_limit_bytes{$} - memwatch:rss_bytes:min15m{$}) / ' +
                '(deriv(memwatch:rss_bytes:min15m{$}[1h]) > 0))',
              format: /** @type {const} */ ('duration')
            }
          ]
            .map(numberTemplate)
            .join(', ')}.`,
        fix: 'Restart the pods before they reach the limit, one at a time. If this process has a ' +
          'verdict, the verdict names the cause.'
      }
    ),
    rule(
      'MemwatchHeapNearLimit',
      'critical',
      `min_over_time(memwatch_live_heap_bytes${matchers()}[10m]) > ${heapRatio} * ` +
        `memwatch_heap_size_limit_bytes${matchers()}\nand ${olderThan(graceSeconds)}`,
      {
        summary: 'The live JS heap is near its limit.',
        description:
          '{{ $labels.target }} ({{ $labels.thread }}) has little free heap: V8 runs GCs more and ' +
            'more often, and then aborts. ' +
          `Now: ${[
            {
              text: 'live heap',
              expr: 'memwatch_live_heap_bytes{$}',
              format: /** @type {const} */ ('bytes')
            },
            {
              text: 'heap size limit',
              expr: 'memwatch_heap_size_limit_bytes{$}',
              format: /** @type {const} */ ('bytes')
            },
            {
              text: 'GC pauses',
              expr: 'sum(rate(memwatch_gc_pause_seconds_sum{$}[2m]))',
              format: /** @type {const} */ ('ratio')
            }
          ]
            .map(numberTemplate)
            .join(', ')}.`,
        fix: 'If the container has room, raise NODE_OPTIONS="--max-old-space-size=…". Otherwise ' +
          'find the retained objects.'
      }
    ),
    rule(
      'MemwatchContainerOomKill',
      'critical',
      `round(increase(memwatch_container_oom_kills_total${matchers()}[10m])) > 0`,
      {
        summary: 'The kernel killed a process of this container for memory.',
        description:
          'In the container of {{ $labels.target }} the kernel killed {{ $value | humanize }} ' +
            'process(es) in ten minutes. ' +
          `Now: ${[
            {
              text: 'memory in use',
              expr: 'memwatch_container_working_set_bytes{$}',
              format: /** @type {const} */ ('bytes')
            },
            {
              text: 'container limit',
              expr: 'memwatch_container_limit_bytes{$}',
              format: /** @type {const} */ ('bytes')
            }
          ]
            .map(numberTemplate)
            .join(', ')}.`,
        fix: 'Raise resources.limits.memory for now. If this process has a verdict, the verdict ' +
          'names the cause.'
      }
    ),
    // Both counter and time are needed. The counter alone would miss the first death of a name that
    // was never scraped, and the time alone would miss a death that was followed by another one.
    ofEnded(rule(
      'MemwatchOutOfMemoryExit',
      'critical',
      'sum without (reason) ' +
        `(increase(memwatch_target_exits_total${matchers('reason=~"oom_kill|heap_oom"')}[${DEATH_SECONDS}s])) ` +
        '> 0\nor max without (reason, sure, text) ' +
        `(memwatch_target_last_exit_timestamp_seconds${matchers('reason=~"oom_kill|heap_oom"')}) ` +
        `> time() - ${DEATH_SECONDS}`,
      {
        summary: 'A Node.js process ran out of memory and ended.',
        description: '{{ $labels.target }} ({{ $labels.thread }}) ran out of memory and ended. ' +
          LAST_EXIT,
        fix: 'memwatch last-death {{ $labels.target }} shows the last ten minutes of the process, ' +
          'and its last verdict. For now, raise the limit that it reached.'
      }
    )),
    ofEnded(rule(
      'MemwatchProcessKeepsEnding',
      'warning',
      'round(sum without (reason) ' +
        `(increase(memwatch_target_exits_total${matchers('reason=~"crash|signal|hung|error"')}[${LOOP.seconds}s]))) ` +
        `>= ${LOOP.exits}`,
      {
        summary: 'A Node.js process ends again and again, but not for lack of memory.',
        description: '{{ $labels.target }} ({{ $labels.thread }}) ended {{ $value | humanize }} ' +
          `times in 15 minutes, neither normally nor for lack of memory. ${LAST_EXIT}`,
        fix: 'Read the last lines of its log (kubectl logs --previous). memwatch last-death {{ ' +
          '$labels.target }} names the cause of each death.'
      }
    ))
  ]
}

module.exports = { backstopAlerts }
