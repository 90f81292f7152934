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
 * @property {string} [option] flag with the address on which it listens
 * @property {(exporter: import('../exporter').Exporter) => void | Promise<void>} start restores,
 *   subscribes and starts timers; no agent or client is connected yet. If it throws, the exporter
 *   does not start. A wrong option causes a ConfigError that names it
 * @property {() => Promise<object>} [open] accepts connections, once all parts have started. Its
 *   result, a field with the address, becomes part of the result of `Exporter.start`
 * @property {() => Promise<void>} [drained] resolves when no work is pending
 * @property {(end?: import('@memwatch/engine/recording/format').End) => void | Promise<void>}
 *   [stop] called also after a failed start; end: end of the watched command
 * @property {Partial<import('../catalog/exporter-metrics').ExporterState>} [state] fields of
 *   `Exporter.state`; called also before the start
 */

/**
 * Every part of the exporter, in the order in which they start. They open and stop in the opposite
 * order. Of the parts that listen, AgentsPart is the first to open and to stop, and HttpPart
 * answers until the last save is done. To add a sink, write its file and add a row.
 *
 * @type {readonly (new () => Part)[]}
 */
const parts = Object.freeze([
  LogPart,
  // This part comes before the parts that send verdicts, because it attaches known bugs to the
  // verdicts.
  KnownBugsPart,
  WebhookPart,
  // This part comes before FlightPart, so that a restored target gets the suspects of its captures.
  CapturesPart,
  // This part starts after CapturesPart has restored captures, and stops before their files are
  // deleted.
  EgressPart,
  AutomaticCapturesPart,
  ForcedReadingsPart,
  // This part comes before FlightPart, which restores follow-ups into it and saves its events.
  FollowUpsPart,
  ProcessDetailsPart,
  HttpPart,
  RecordingPart,
  FlightPart,
  // This part comes after the parts that restore, because it reports the files that they could not
  // read.
  DataFolderPart,
  OtlpPart,
  // This part evaluates the last frames once AgentsPart has stopped; the parts above receive the
  // verdicts.
  JudgingPart,
  AgentsPart,
  // This part stops before AgentsPart, because connections that the exporter closes are no deaths.
  DeathsPart,
  // This part stops before AgentsPart, so that the agents that it has started can still connect.
  AttachingPart,
  SelfCarePart
])

module.exports = { parts }
