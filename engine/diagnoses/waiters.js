'use strict'

/**
 * Work that waits for a late loop. clients: a server listens or has accepted connections, or this
 * is unknown. timers: several timers are always pending, and the loop waits for them. perhaps: one
 * timer is pending, which may be the program's own pause, or several in a loop without pauses or in
 * a worker, which often exists for such work, or outgoing connections are open.
 * @param {Record<'serversListening' | 'connectionsAccepted' | 'fewestTimers' |
 *   'fewestConnections' | 'runQueueWaitRatio', number | null> & {
 *   eventLoopUtilizationRatio: number }} signals
 * @param {{ batchBusyRatio: number, batchTimers: number }} limits
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

module.exports = { findWaiters }
