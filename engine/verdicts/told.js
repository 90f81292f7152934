'use strict'

/**
 * Remembers the reported findings of each target, so that only changes are reported: a new finding,
 * a change of its state, and its end.
 */
class Told {
  /**
   * Reported states by diagnosis, for each target.
   * @type {WeakMap<import('../history/target').Target, Map<string, string>>}
   */
  #told = new WeakMap()

  /**
   * @param {import('../history/target').Target} target
   * @param {import('./evaluate').Verdict} verdict whose state changed
   * @returns {{ was: string | null } | undefined} undefined if there is nothing to report: for an
   *   opportunity, or without a finding before and after
   */
  change (target, { diagnosis, state, opportunity }) {
    if (opportunity) return undefined
    const told = this.#told.get(target) ?? new Map()
    this.#told.set(target, told)
    const was = told.get(diagnosis)
    const isFound = state === 'suspected' || state === 'confirmed'
    if (!isFound && was === undefined) return undefined
    if (isFound) told.set(diagnosis, state)
    else told.delete(diagnosis)
    return { was: was ?? null }
  }

  /**
   * @param {import('../history/target').Target} target
   * @param {Pick<import('./evaluate').Verdict, 'diagnosis' | 'state'>} verdict
   * @returns {boolean} true if this state was the last one reported
   */
  stands (target, { diagnosis, state }) {
    return this.#told.get(target)?.get(diagnosis) === state
  }
}

module.exports = { Told }
