'use strict'

/**
 * Functions whose source is evaluated inside another process, by any Node.js from 18 on: each uses
 * only its parameters. `require` exists only during the evaluation. Nothing may throw after the
 * evaluation: an error in a timer would end the app.
 */

/**
 * Runs work in separate turns of the event loop, because the inspector may interrupt the app in
 * the middle of a function.
 * @param {NodeRequire} require
 * @param {(require: NodeRequire, given: any) => object} work its answer, or a function: the work of
 *   the next turn, so that the app's requests wait less
 * @param {any} given
 * @returns {Promise<string>} answer as JSON
 */
function inOwnTurns (require, work, given) {
  return new Promise(resolve => {
    const runNext = (/** @type {typeof work} */ step) => {
      const immediate = require('timers').setImmediate(() => {
        let answer
        try {
          answer = step(require, given)
        } catch (error) {
          answer = { error: error instanceof Error ? error.message : 'unknown' }
        }
        if (typeof answer === 'function') runNext(/** @type {typeof work} */ (answer))
        else resolve(JSON.stringify(answer))
      })
      // The interrupted function may belong to a request. Without this step the agent's timers
      // would retain the values that the request has in AsyncLocalStorage.
      for (const symbol of Object.getOwnPropertySymbols(immediate)) {
        if (/^kResourceStore|AsyncContextFrame/.test(symbol.description ?? '')) {
          Object.defineProperty(immediate, symbol, { value: undefined, writable: true })
        }
      }
    }
    runNext(work)
  })
}

/**
 * First function that runs in a process. It makes sure that the inspector is closed later, even if
 * this program is killed.
 * @param {NodeRequire} require
 * @param {{ afterMs: number }} given
 * @returns {{ pid: number, node?: string, runtime?: string }}
 */
function guardInspector (require, { afterMs }) {
  const timer = require('timers').setTimeout(() => {
    try {
      require('inspector').close()
    } catch {}
  }, afterMs)
  timer.unref()
  Object.defineProperty(globalThis, Symbol.for('memwatch.inspector'), {
    value: timer, configurable: true
  })
  const { bun, deno, node } = /** @type {any} */ (process.versions)
  return { pid: process.pid, node, runtime: bun ? 'Bun' : deno ? 'Deno' : undefined }
}

/**
 * Last function that runs in a process. It closes the inspector after the answer was sent.
 * @param {NodeRequire} require
 */
function closeInspector (require) {
  const key = Symbol.for('memwatch.inspector')
  const { clearTimeout, setTimeout } = require('timers')
  clearTimeout(/** @type {any} */ (globalThis)[key])
  Reflect.deleteProperty(globalThis, key)
  setTimeout(() => {
    try {
      require('inspector').close()
    } catch {}
  }, 5)
  return {}
}

/**
 * Starts the agent of an isolate as its preload does.
 * @param {NodeRequire} require
 * @param {object} given
 * @param {string} given.folder folder of the agent
 * @param {Record<string, string>} given.env variables that only the agent sees
 * @param {Record<string, string>} given.defaults variables that the process's own variables
 *   override
 * @param {number} given.untilUnixMs time limit; a blocked app may call this function after memwatch
 *   has stopped waiting
 * @returns {{ refused?: 'running' | 'permission' | 'disabled' | 'late' } |
 *   (() => () => () => { name: string })} turns; name: name of the app, as reported by its agent
 */
function startAgent (require, { folder, env, defaults, untilUnixMs }) {
  const key = Symbol.for('memwatch.agent')
  if (Date.now() > untilUnixMs) return { refused: 'late' }
  if (/** @type {any} */ (globalThis)[key]) return { refused: 'running' }
  if (/** @type {any} */ (process).permission) return { refused: 'permission' }
  // Node.js uses real paths as the names of loaded modules.
  const path = require('fs').realpathSync(folder)
  // A module retains the modules that it loads, so a module of the app would retain the agent.
  const createLoad = () => require('module').createRequire(`${path}/begin`)
  const load = createLoad()
  const config = load('./protocol/config').readConfig({ ...defaults, ...process.env, ...env })
  if (config.disabled) return { refused: 'disabled' }
  const loadAddon = () => {
    if (config.gcHooks || config.allocatorAccess !== 'off') {
      try {
        // Node.js never unloads an addon, which retains the first module that loaded it.
        createLoad()('./addon').loadAddon()
      } catch {} // There is no addon; the agent reports the reason.
    }
    return begin
  }
  const begin = () => {
    const { Lifecycle } = load('./begin')
    const agent = new Lifecycle(config, require('util').debuglog('memwatch'))
    Object.defineProperty(globalThis, key, {
      value: {
        stop () {
          // Without a goodbye the exporter would report that the process fell silent.
          agent.end(0)
          agent.stop()
          // The agent's modules are removed from the cache: the next attach may use another
          // version, and a detached app needs no code of the agent.
          const isOwn = (/** @type {string} */ file) =>
            file.startsWith(`${path}/`) && !file.slice(path.length).includes('/node_modules/')
          for (const file of Object.keys(require.cache)) {
            if (isOwn(file)) delete require.cache[file]
          }
        }
      },
      configurable: true
    })
    return identify
  }
  const identify = () => {
    const { appName, scriptPath } = load('./identity')
    return { name: config.name || appName(scriptPath()) }
  }
  return loadAddon
}

/**
 * Stops the agent of an isolate.
 * @returns {{ refused?: 'absent' }}
 */
function stopAgent () {
  const key = Symbol.for('memwatch.agent')
  const agent = /** @type {any} */ (globalThis)[key]
  if (!agent) return { refused: 'absent' }
  agent.stop()
  Reflect.deleteProperty(globalThis, key)
  return {}
}

/**
 * @template {(require: NodeRequire, given: any) => object} Work
 * @param {Work} work
 * @param {Parameters<Work>[1]} [given]
 * @returns {string} expression for Runtime.evaluate
 */
const expressionOf = (work, given) =>
  `(${inOwnTurns})(require, ${work}, ${JSON.stringify(given ?? null)})`

module.exports = { expressionOf, guardInspector, closeInspector, startAgent, stopAgent }
