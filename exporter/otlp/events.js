'use strict'

const { pasteLine } = require('@memwatch/engine/fixes/paste-line')
const { reasons } = require('../deaths/reasons')
const { hrTime } = require('./metric-data')
const { scope } = require('./scope')

/**
 * @typedef {Parameters<typeof
 *   import('@opentelemetry/otlp-transformer').ProtobufLogsSerializer.serializeRequest>[0][number]}
 *   LogRecord
 */

/** Severity numbers of OpenTelemetry's logs data model. */
const SEVERITIES = Object.freeze({ INFO: 9, WARN: 13, ERROR: 17 })
/**
 * Severity of a confirmed verdict, by the urgency of its alert: a page, a ticket, nothing.
 * @type {Record<string, keyof typeof SEVERITIES>}
 */
const SEVERITY_OF = { critical: 'ERROR', warning: 'WARN', info: 'INFO' }

/**
 * @param {string} eventName
 * @param {keyof typeof SEVERITIES} severityText
 * @param {string} body
 * @param {Record<string, any>} attributes
 * @param {{ resource: import('@opentelemetry/resources').Resource, atUnixMs: number, nowUnixMs:
 *   number }} of
 * @returns {LogRecord}
 */
const event = (eventName, severityText, body, attributes, { resource, atUnixMs, nowUnixMs }) => ({
  eventName,
  severityText,
  severityNumber: SEVERITIES[severityText],
  body,
  attributes: Object.fromEntries(
    Object.entries(attributes).filter(
      ([, value]) => value !== null && value !== undefined && value !== ''
    )
  ),
  resource,
  instrumentationScope: scope,
  hrTime: hrTime(atUnixMs),
  hrTimeObserved: hrTime(nowUnixMs),
  droppedAttributesCount: 0
})

/**
 * Event of a verdict that changed: it is suspected, confirmed or resolved.
 * @param {import('@memwatch/engine/verdicts/evaluate').Verdict} verdict
 * @param {string | null} was
 * @param {{ resource: import('@opentelemetry/resources').Resource, nowUnixMs: number }} of
 */
const verdictEvent = (
  { diagnosis, title, state, severity, summary, evidence, impact, fix, ruledOut, runbook },
  was,
  { resource, nowUnixMs }
) =>
  event(
    'memwatch.verdict',
    state === 'confirmed' ? SEVERITY_OF[severity] : 'INFO',
    summary,
    {
      'memwatch.diagnosis': diagnosis,
      'memwatch.verdict.title': title,
      'memwatch.verdict.state': state,
      'memwatch.verdict.was': was,
      'memwatch.verdict.severity': severity,
      'memwatch.verdict.impact': impact,
      'memwatch.verdict.evidence': evidence.map(({ text }) => text),
      'memwatch.verdict.ruled_out': ruledOut.map(({ diagnosis }) => diagnosis),
      'memwatch.verdict.fix': pasteLine(fix[0]),
      'memwatch.verdict.runbook': runbook
    },
    { resource, atUnixMs: nowUnixMs, nowUnixMs }
  )

/**
 * Event of a process that ended.
 * @param {import('../deaths/deaths').Death} death
 * @param {{ resource: import('@opentelemetry/resources').Resource, nowUnixMs: number }} of
 */
const deathEvent = (
  { id, reason, sure, text, exitCode, signal, suspects, verdict, diedAtUnixMs },
  { resource, nowUnixMs }
) =>
  event(
    'memwatch.death',
    reasons[reason].counted ? 'ERROR' : 'INFO',
    text,
    {
      'memwatch.death.id': id,
      'memwatch.death.reason': reason,
      'memwatch.death.sure': sure,
      'memwatch.death.signal': signal,
      'memwatch.death.suspects': suspects,
      'process.exit.code': exitCode,
      'memwatch.diagnosis': verdict?.diagnosis,
      'memwatch.verdict.fix': verdict?.fix
    },
    { resource, atUnixMs: diedAtUnixMs, nowUnixMs }
  )

/**
 * Event of an ended follow-up.
 * @param {import('@memwatch/engine/verdicts/follow-up').FollowUp} followUp
 * @param {{ resource: import('@opentelemetry/resources').Resource, nowUnixMs: number }} of
 */
const followUpEvent = (
  { id, workload, diagnosis, title, fix, change, ending, text, effectRatio },
  { resource, nowUnixMs }
) =>
  event(
    'memwatch.fix',
    ending === 'fixed_as_predicted' ? 'INFO' : 'WARN',
    text,
    {
      'memwatch.fix.id': id,
      'memwatch.fix.workload': workload,
      'memwatch.fix.ending': ending,
      'memwatch.fix.effect': effectRatio,
      'memwatch.fix.title': fix,
      'memwatch.verdict.title': title,
      'memwatch.verdict.fix': change,
      'memwatch.diagnosis': diagnosis
    },
    { resource, atUnixMs: nowUnixMs, nowUnixMs }
  )

module.exports = { verdictEvent, deathEvent, followUpEvent }
