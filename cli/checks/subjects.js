'use strict'

const {
  viewNodeProcesses, ancestorsOf, settingsOf, isMemwatch, isStarter, preloadsAgent
} = require('@memwatch/exporter/process/process-view')

/** @typedef {import('./check').Subject} Subject */

/**
 * All visible Node.js processes, and all targets.
 * @param {any[]} targets
 * @param {any[]} judged
 * @returns {Subject[]}
 */
function subjectsOf (targets, judged) {
  const main = targets.filter(({ thread }) => thread === 'main')
  const views = viewNodeProcesses().filter(view => !isMemwatch(view))
  const unseen = main.map(({ pid }) => pid).filter(pid => !views.some(view => view.pid === pid))
  return [...views, ...unseen].map(viewOrPid => {
    const view = typeof viewOrPid === 'number' ? undefined : viewOrPid
    const pid = view?.pid ?? /** @type {number} */ (viewOrPid)
    const target = main.find(target => target.pid === pid)
    return {
      pid,
      view,
      settings: view ? settingsOf(view) : null,
      ancestors: view ? ancestorsOf(view) : [],
      target,
      verdicts: judged.find(item => item.pid === pid && item.thread === 'main')?.verdicts ?? []
    }
  })
}

/**
 * @param {Subject} subject
 * @returns {boolean} true if the process reports, or preloads the agent
 */
const hasAgent = ({ target, settings, view }) =>
  Boolean(target?.up) ||
  (view !== undefined && (target !== undefined || (preloadsAgent(settings) && !isStarter(view))))

module.exports = { subjectsOf, hasAgent }
