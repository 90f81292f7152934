'use strict'

const { AgentsPart } = require('./agents')
const { AttachingPart } = require('./attaching')
const { AutomaticCapturesPart } = require('./automatic-captures')
const { CapturesPart } = require('./captures')
const { DataFolderPart } = require('./data-folder')
const { DeathsPart } = require('./deaths')
const { EgressPart } = require('./egress')
const { FlightPart } = require('./flight')
const { FollowUpsPart } = require('./follow-ups')
const { ForcedReadingsPart } = require('./forced-readings')
const { HttpPart } = require('./http')
const { JudgingPart } = require('./judging')
const { KnownBugsPart } = require('./known-bugs')
const { LogPart } = require('./log')
const { OtlpPart } = require('./otlp')
const { ProcessDetailsPart } = require('./process-details')
const { RecordingPart } = require('./recording')
const { SelfCarePart } = require('./self-care')
const { WebhookPart } = require('./webhook')

/**
 * A part of the exporter. It subscribes to the events that it needs: exporter.js lists them.
 *
 * @typedef {object} Part
 * @property {string} name
 * @property {string} [option] the flag of the address where it listens
 * @property {(exporter: import('../exporter').Exporter) => void | Promise<void>} start restores,
 *   subscribes and starts timers; nobody is connected yet. It may throw: the exporter does not
 *   start then. A wrong option is a ConfigError that names it
 * @property {() => Promise<object>} [open] accepts connections, when all parts have started. Its
 *   result is the address, in a field of what `Exporter.start` returns
 * @property {() => Promise<void>} [drained] resolves when nothing is under way
 * @property {(end?: import('@memwatch/engine/recording/format').End) => void | Promise<void>} [stop] also after a
 *   start that failed; end: of the watched command
 * @property {Partial<import('../catalog/exporter-metrics').ExporterState>} [state] fields of
 *   `Exporter.state`, also before the start
 */

/**
 * Every part of the exporter, in the order in which they start. They open and stop in the opposite
 * order: AgentsPart is the first to open and to close, and HTTP answers until the last save is
 * done. To add a sink, write its file and add a row.
 *
 * @type {readonly (new () => Part)[]}
 */
const parts = Object.freeze([
  LogPart,
  // Before those that send verdicts: it attaches to them.
  KnownBugsPart,
  WebhookPart,
  // Before FlightPart: a restored target is given the suspects of its captures.
  CapturesPart,
  // After CapturesPart has restored, and stops before its files go.
  EgressPart,
  AutomaticCapturesPart,
  ForcedReadingsPart,
  // Before FlightPart, which restores into it and retains what it emits.
  FollowUpsPart,
  ProcessDetailsPart,
  HttpPart,
  RecordingPart,
  FlightPart,
  // After those that restore: it reports the files that none of them could read.
  DataFolderPart,
  OtlpPart,
  // Judges the last frames once AgentsPart has stopped, for those above.
  JudgingPart,
  AgentsPart,
  // Stops before AgentsPart: connections that the exporter closes are no deaths.
  DeathsPart,
  // Stops first: an agent that it starts is heard until the end.
  AttachingPart,
  SelfCarePart
])

module.exports = { parts }
