'use strict'

const { PassThrough } = require('node:stream')
const { steadyUnixMs } = require('../clock')
const { MOST } = require('./client-limits')
const { refuse } = require('./problems')
const { nameOf, withoutOmitted } = require('./targets')
const { attachedVerdicts } = require('@memwatch/engine/verdicts/attached')
const { headlineOf } = require('@memwatch/engine/verdicts/headline')

const EVERY_MS = 1000
/** Limit of unsent data: a client that reads too slowly is disconnected, and may reconnect. */
const MOST_UNREAD_BYTES = 4 * 2 ** 20
/** Window of shares of time, such as the share of GC pauses. */
const SHARE_SECONDS = 10

/**
 * GET /api/v1/live: server-sent events, for open pages and `memwatch top`.
 *   targets    a row for every target, once a second
 *   verdict    a diagnosis changed its state on a target
 *   death, captured     the same as in /api/v1/deaths and /api/v1/captures
 *
 * @param {import('fastify').FastifyInstance} server
 * @param {object} parts
 * @param {() => import('@memwatch/engine/history/target').Target[]} parts.targets
 * @param {import('../deaths/death-watch').DeathWatch} parts.deathWatch
 * @param {import('node:events').EventEmitter} parts.events of the exporter
 * @param {import('./client-limits').ClientLimits} parts.limits
 * @param {(target: import('@memwatch/engine/history/target').Target, error: Error) => void}
 *   parts.omit called for an omitted target
 */
function liveRoutes (server, { targets, deathWatch, events, limits, omit }) {
  /** @type {Set<PassThrough>} */
  const viewers = new Set()
  /** @type {NodeJS.Timeout | undefined} */
  let timer

  /**
   * @param {string} event
   * @param {object} content
   */
  const tell = (event, content) => {
    if (viewers.size === 0) return
    const text = `event: ${event}\ndata: ${JSON.stringify(content)}\n\n`
    for (const viewer of viewers) {
      if (viewer.readableLength + viewer.writableLength > MOST_UNREAD_BYTES) viewer.destroy()
      else viewer.write(text)
    }
  }
  const tellTargets = () =>
    tell(
      'targets',
      withoutOmitted(targets(), target => rowOf(target, deathWatch), omit)
    )
  const told = {
    verdict: (
      /** @type {import('@memwatch/engine/history/target').Target} */ target,
      /** @type {import('@memwatch/engine/verdicts/evaluate').Verdict} */ verdict
    ) => tell('verdict', { ...nameOf(target), ...shortOf(verdict) }),
    death: (/** @type {import('../deaths/deaths').Death} */ death) => tell('death', death),
    captured: (/** @type {import('../captures/captures').Capture} */ capture) =>
      tell('captured', capture)
  }
  for (const [event, listener] of Object.entries(told)) events.on(event, listener)
  server.addHook('preClose', async () => {
    for (const [event, listener] of Object.entries(told)) events.off(event, listener)
    for (const viewer of viewers) viewer.end()
  })

  server.get('/api/v1/live', { exposeHeadRoute: false }, async (request, reply) => {
    const limit = limits.startViewing(request.raw, reply.raw)
    if (limit) {
      const viewers = `${MOST.viewers[limit]} ` +
        `viewers${limit === 'ofAddress' ? ' from your address' : ''}`
      return refuse(
        reply,
        'too_many_viewers',
        `${viewers} are connected, the maximum: close one, or poll /api/v1/targets`
      )
    }
    const viewer = new PassThrough()
    viewers.add(viewer)
    viewer.on('close', () => {
      viewers.delete(viewer)
      if (viewers.size === 0) clearInterval(timer)
    })
    viewer.on('error', () => {})
    if (viewers.size === 1) timer = setInterval(tellTargets, EVERY_MS).unref()
    tellTargets()
    // A kept-alive connection would delay the end of the exporter until its idle timeout.
    return reply
      .type('text/event-stream')
      .header('connection', 'close')
      .header('cache-control', 'no-store')
      .header('x-accel-buffering', 'no')
      .send(viewer)
  })
}

/** @param {import('@memwatch/engine/verdicts/evaluate').Verdict} verdict */
const shortOf = ({ diagnosis, title, state, severity, opportunity, summary }) =>
  ({ diagnosis, title, state, severity, opportunity, summary })

/**
 * Row of a target for lists.
 * @param {import('@memwatch/engine/history/target').Target} target
 * @param {import('../deaths/death-watch').DeathWatch} deathWatch
 */
function rowOf (target, deathWatch) {
  const { rssBytes, containerLimitBytes, heapUsedBytes, heapSizeLimitBytes } = target.values
  const verdicts = attachedVerdicts(target)
  return {
    ...nameOf(target),
    startedAtUnixMs: target.hello.startedAtUnixMs,
    up: target.isUp(steadyUnixMs()),
    silence: deathWatch.silenceOf(target) ?? null,
    uptimeSeconds: target.frame?.uptimeSeconds,
    rssBytes,
    containerLimitBytes,
    heapUsedBytes,
    heapSizeLimitBytes,
    loopRatio: shareOf(target, 'eventLoopActiveSeconds'),
    gcRatio: shareOf(target, 'gcPauseSeconds'),
    pod: target.hello.pod?.name ?? null,
    wasteBytes: wasteOf(verdicts),
    headline: headlineOf(target, verdicts)
  }
}

/**
 * Largest predicted saving of RSS by one fix.
 * @param {readonly import('@memwatch/engine/verdicts/evaluate').Verdict[]} verdicts
 * @returns {number} bytes
 */
const wasteOf = verdicts => Math.max(0, ...verdicts
  .filter(({ state }) => state === 'confirmed')
  .flatMap(({ fix }) => fix.flatMap(({ predicted }) => predicted))
  .filter(({ signal }) => signal === 'rssBytes')
  .map(({ from, to }) => from - to))

/**
 * Growth of a counter of seconds, as a share of the last SHARE_SECONDS.
 * @param {import('@memwatch/engine/history/target').Target} target
 * @param {'eventLoopActiveSeconds' | 'gcPauseSeconds'} track
 * @returns {number | undefined} ratio
 */
function shareOf (target, track) {
  const grown = target.window()?.increase(track, SHARE_SECONDS)
  return grown ? grown.increase / grown.overSeconds : undefined
}

module.exports = { liveRoutes }
