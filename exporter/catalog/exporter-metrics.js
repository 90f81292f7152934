'use strict'

const { performance } = require('node:perf_hooks')
const { steadyUnixMs } = require('../clock')
const { kinds } = require('../captures/kinds')
const { levels, memoryLimitBytes, ownRssBytes } = require('../self-care/load')
const { REJECT_REASONS } = require('@memwatch/engine/decode/decode')

/**
 * State of the exporter from which its own metrics are read.
 * @typedef {object} ExporterState
 * @property {Map<string, number>} rejected rejected lines by reason
 * @property {number} frames number of accepted frames
 * @property {number} framesShed number of frames skipped to save time
 * @property {number} loadLevel load shedding level of self-care/load.js
 * @property {number} connections open connections
 * @property {number} targets watched targets
 * @property {number} diagnosisErrors
 * @property {number} listenerErrors number of errors in listeners to the exporter's events
 * @property {number} targetsOmitted number of targets omitted from answers of the API because they
 *   could not be serialized
 * @property {ReturnType<import('../deaths/deaths').Deaths['exits']>} exits
 * @property {import('../deaths/deaths').Death[]} deaths last death of each name
 * @property {{ target: import('@memwatch/engine/history/target').Target, cause:
 *   import('../deaths/silence').SilenceCause }[]} silent
 * @property {import('../flight/flight-recorder').FlightRecorder['state']} flight
 * @property {{ counts: Map<string, number>, bytes: number }} captures counts by kind and outcome,
 *   such as `cpu_profile done`; bytes on disk
 * @property {Map<string, number>} [webhook] requests by outcome; undefined without --webhook
 * @property {Map<string, number>} [otlp] exports of --otlp by signal and outcome, such as `metrics
 *   delivered`; undefined without --otlp
 * @property {{ counts: Map<string, number>, waiting: number, bytes: number }} [egress] captures
 *   sent to --ship-to by outcome; undefined without --ship-to
 * @property {Map<string, number>} [attachments] attempts to attach by trigger and outcome, such as
 *   `request attached`; undefined without an option to attach
 * @property {import('../follow-ups/follow-ups').FollowUps} [followUps] undefined before the start
 * @property {number} [scrapeSeconds] duration of the last scrape
 * @property {string} version
 *
 * @typedef {object} ExporterMetric
 * @property {string} name
 * @property {'gauge' | 'counter'} type
 * @property {string} help
 * @property {import('./otel').OtelOverride} [otel] its name in OpenTelemetry, if it differs
 * @property {(state: ExporterState) => import('./metric').Sample[] | number} read
 */

/** @type {readonly ExporterMetric[]} */
const exporterMetrics = Object.freeze([
  {
    name: 'memwatch_exporter_info',
    type: 'gauge',
    help: 'Version of the exporter: always 1.',
    read: ({ version }) => [{ labels: { version }, value: 1 }]
  },
  {
    name: 'memwatch_exporter_lines_rejected_total',
    type: 'counter',
    help: 'Rejected lines, by reason.',
    read: ({ rejected }) =>
      REJECT_REASONS.map(reason => ({ labels: { reason }, value: rejected.get(reason) ?? 0 }))
  },
  {
    name: 'memwatch_exporter_frames_total',
    type: 'counter',
    help: 'Accepted frames.',
    read: ({ frames }) => frames
  },
  {
    name: 'memwatch_exporter_frames_shed_total',
    type: 'counter',
    help: 'Frames of healthy targets that the overloaded exporter skipped.',
    read: ({ framesShed }) => framesShed
  },
  {
    name: 'memwatch_exporter_load_level',
    type: 'gauge',
    help: 'Level of overload of the exporter. ' +
      `${levels.map(({ gives }, level) => `${level}: ${gives}`).join('; ')}.`,
    read: ({ loadLevel }) => loadLevel
  },
  {
    name: 'memwatch_exporter_event_loop_active_seconds_total',
    type: 'counter',
    help: "Busy time of the exporter's event loop.",
    read: () => performance.eventLoopUtilization().active / 1000
  },
  {
    name: 'memwatch_exporter_cpu_seconds_total',
    type: 'counter',
    help: 'CPU time of the exporter itself.',
    read: () => {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1e6
    }
  },
  {
    name: 'memwatch_exporter_scrape_seconds',
    type: 'gauge',
    help: 'Time to render the previous scrape; absent in the first scrape.',
    read: ({ scrapeSeconds }) => scrapeSeconds ?? []
  },
  {
    name: 'memwatch_exporter_connections',
    type: 'gauge',
    help: 'Open connections of agents.',
    read: ({ connections }) => connections
  },
  {
    name: 'memwatch_exporter_targets',
    type: 'gauge',
    help: 'Watched targets.',
    read: ({ targets }) => targets
  },
  {
    name: 'memwatch_target_exits_total',
    type: 'counter',
    help: 'Ended processes of this name, by reason (docs/deaths.md). The counter does not start ' +
      'again with the next process.',
    otel: { startUnknown: true }, // The counter includes events before a restart of the exporter.
    read: ({ exits }) => exits.map(({ count, ...labels }) => ({ labels, value: count }))
  },
  {
    name: 'memwatch_target_last_exit_timestamp_seconds',
    type: 'gauge',
    help: 'Time when the last process of this name ended, Unix time; the label reason has the ' +
      'cause.',
    read: ({ deaths }) =>
      deaths.map(({ target, thread, reason, sure, text, diedAtUnixMs }) => ({
        labels: { target, thread, reason, sure, text },
        value: diedAtUnixMs / 1000
      }))
  },
  {
    name: 'memwatch_target_silence_seconds',
    type: 'gauge',
    help: 'Time since the last frame of a silent process, with the cause of the silence; absent ' +
      'while it sends frames, and after its end.',
    read: ({ silent }) =>
      silent.map(({ target, cause }) => ({
        labels: { target: target.name, thread: target.thread, cause },
        value: (steadyUnixMs() - target.seenAtUnixMs) / 1000
      }))
  },
  {
    name: 'memwatch_fix_followups_total',
    type: 'counter',
    help: 'Restarted processes with an advised change, by diagnosis and by ending ' +
      '(docs/follow-up.md); absent for a diagnosis without such a process.',
    otel: { startUnknown: true }, // The counter includes events before a restart of the exporter.
    read: ({ followUps }) => [...(followUps?.counts ?? [])].flatMap(([diagnosis, counts]) =>
      [...counts].map(([ending, value]) => ({ labels: { diagnosis, ending }, value })))
  },
  {
    name: 'memwatch_fix_effect_ratio',
    type: 'gauge',
    help: 'Measured effect of the last applied fix, divided by the predicted effect: 1 is as ' +
      'predicted.',
    read: ({ followUps }) => [...(followUps?.effects ?? [])].map(([diagnosis, value]) =>
      ({ labels: { diagnosis }, value }))
  },
  {
    name: 'memwatch_exporter_diagnosis_errors_total',
    type: 'counter',
    help: 'Evaluations of diagnoses that failed with an error; their verdict is unknown.',
    read: ({ diagnosisErrors }) => diagnosisErrors
  },
  {
    name: 'memwatch_exporter_listener_errors_total',
    type: 'counter',
    help:
      'Events that one part of the exporter failed to handle; the other parts handled them. The ' +
        'log has the first error of each kind.',
    read: ({ listenerErrors }) => listenerErrors
  },
  {
    name: 'memwatch_exporter_targets_omitted_total',
    type: 'counter',
    help: 'Targets that API answers omit because they cannot be serialized.',
    read: ({ targetsOmitted }) => targetsOmitted
  },
  {
    name: 'memwatch_exporter_history_bytes',
    type: 'gauge',
    help: 'Size of the history of hours and days, in memory and on disk.',
    read: ({ flight }) => [
      { labels: { where: 'memory' }, value: flight.memoryBytes },
      { labels: { where: 'disk' }, value: flight.diskBytes }
    ]
  },
  {
    name: 'memwatch_exporter_history_saving',
    type: 'gauge',
    help: '1 while histories are saved to disk; 0 without a data folder, or while writes fail.',
    read: ({ flight }) => (flight.saving ? 1 : 0)
  },
  {
    name: 'memwatch_exporter_history_dropped_total',
    type: 'counter',
    help: 'Parts of histories dropped to limit memory, or not written because the disk failed. ' +
      'The exporter retries failed writes while the parts are in memory.',
    read: ({ flight }) => flight.dropped
  },
  {
    name: 'memwatch_exporter_history_torn_total',
    type: 'counter',
    help: 'Damaged parts of saved histories that the exporter skipped: unfinished writes of a ' +
      'dead exporter, and unreadable files.',
    read: ({ flight }) => flight.torn
  },
  {
    name: 'memwatch_exporter_captures_total',
    type: 'counter',
    help: 'Requested captures (profiles, snapshots), by kind and outcome.',
    read: ({ captures }) =>
      Object.keys(kinds).flatMap(kind =>
        ['done', 'failed'].map(state => ({
          labels: { kind, state },
          value: captures.counts.get(`${kind} ${state}`) ?? 0
        }))
      )
  },
  {
    name: 'memwatch_exporter_webhook_posts_total',
    type: 'counter',
    help: 'Changes of verdicts for --webhook, by outcome; absent without --webhook.',
    read: ({ webhook }) =>
      [...(webhook ?? [])].map(([outcome, value]) => ({ labels: { outcome }, value }))
  },
  {
    name: 'memwatch_exporter_otlp_exports_total',
    type: 'counter',
    help: 'Exports of --otlp by signal and outcome: readings of one target (metrics), events ' +
      '(logs); rejected: the receiver refused a part; absent without --otlp.',
    read: ({ otlp }) =>
      [...(otlp ?? [])].map(([key, value]) => {
        const [signal, outcome] = key.split(' ')
        return { labels: { signal, outcome }, value }
      })
  },
  {
    name: 'memwatch_exporter_egress_captures_total',
    type: 'counter',
    help: 'Captures for --ship-to, by outcome: shipped, failed (given up), dropped (deleted ' +
      'before they were sent, or beyond the limit of the queue); absent without --ship-to.',
    read: ({ egress }) => [...(egress?.counts ?? [])].map(([outcome, value]) =>
      ({ labels: { outcome }, value }))
  },
  {
    name: 'memwatch_exporter_egress_waiting',
    type: 'gauge',
    help: 'Captures that wait to be sent to --ship-to; absent without --ship-to.',
    read: ({ egress }) => egress?.waiting ?? []
  },
  {
    name: 'memwatch_exporter_egress_bytes_total',
    type: 'counter',
    help: 'Bytes of captures sent to --ship-to; absent without --ship-to.',
    read: ({ egress }) => egress?.bytes ?? []
  },
  {
    name: 'memwatch_exporter_attachments_total',
    type: 'counter',
    help: 'Attempts to attach to running processes, by trigger and outcome; absent without ' +
      '--attach-on-request and --attach-annotated.',
    read: ({ attachments }) =>
      [...(attachments ?? [])].map(([key, value]) => {
        const [trigger, outcome] = key.split(' ')
        return { labels: { trigger, outcome }, value }
      })
  },
  {
    name: 'memwatch_exporter_captures_bytes',
    type: 'gauge',
    // The unit distinguishes this name from the counter of captures.
    otel: { name: 'memwatch.exporter.captures.bytes' },
    help: 'Size of captures on disk.',
    read: ({ captures }) => captures.bytes
  },
  {
    name: 'memwatch_exporter_resident_memory_bytes',
    type: 'gauge',
    help: 'Resident set size of the exporter itself; absent without /proc.',
    read: () => ownRssBytes() ?? []
  },
  {
    name: 'memwatch_exporter_memory_limit_bytes',
    type: 'gauge',
    help: "Memory limit of the exporter's own container; absent without one.",
    read: () => memoryLimitBytes() ?? []
  }
])

module.exports = { exporterMetrics }
