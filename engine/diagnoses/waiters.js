'use strict'

/** Limits of a program for which perhaps nobody waits. */
const WAITER_LIMITS = Object.freeze({
  // Without a listening server, a late timer matters only if the loop waits for it. A batch program
  // works without a pause: its loop is busy 0.99 of the time, and less while it reads files. Queue
  // workers with a blocked loop measured 0.24 to 0.37. A timer that computes for most of its
  // interval measured 0.8.
  batchBusyRatio: 0.9,
  // A program that pauses between the pieces of its work always has a timer: frames are sent in the
  // pauses.
  batchTimers: 1
})

/**
 * Work that waits for a late loop. clients: a server listens or has accepted connections, or this
 * is unknown. timers: several timers are always pending, and the loop waits for them. perhaps: one
 * timer is pending, which may be the program's own pause, or several in a loop without pauses or in
 * a worker, which often exists for such work, or outgoing connections are open.
 * @param {Record<'serversListening' | 'connectionsAccepted' | 'fewestTimers' |
 *   'fewestConnections' | 'runQueueWaitRatio', number | null> & {
 *   eventLoopUtilizationRatio: number }} signals
 * @param {typeof WAITER_LIMITS} limits
 * @param {boolean} isWorker
 * @returns {'clients' | 'timers' | 'perhaps' | 'nobody'}
 */
function findWaiters (signals, { batchBusyRatio, batchTimers }, isWorker) {
  const { serversListening, connectionsAccepted, fewestTimers, fewestConnections } = signals
  if (serversListening !== 0 || connectionsAccepted !== 0) return 'clients'
  // Compare the busy time with the time in which the thread did not wait for a CPU. Given more CPU,
  // a batch program stays as busy, while a loop that waits for timers pauses more.
  const waited = signals.runQueueWaitRatio ?? 0
  const ownBusy = (signals.eventLoopUtilizationRatio - waited) / (1 - waited)
  const areSeveral = (fewestTimers ?? 0) > batchTimers
  if (areSeveral && !isWorker && ownBusy < batchBusyRatio) return 'timers'
  return fewestTimers || fewestConnections ? 'perhaps' : 'nobody'
}

module.exports = { WAITER_LIMITS, findWaiters }
