'use strict'

/**
 * Preload: `node -r memwatch/agent app.js`. Only this file has side effects. It starts the agent
 * once per isolate, or does nothing; it never throws. A global preload also reaches old Node.js:
 * this file must parse there. The files that it loads may fail to parse; then the agent stays off.
 */

/** Two installed copies share this symbol: the first one runs. */
const RUNNING = Symbol.for('memwatch.agent')

/** @returns {string | undefined} reason to leave this process alone */
function reasonToStayOut () {
  if (/** @type {any} */ (global)[RUNNING]) return 'another copy of the agent runs in this isolate'
  if (process.versions.bun || /** @type {any} */ (process.versions).deno) return 'not Node.js'
  if (require('./protocol/starters').startsApp(process.argv)) return 'it starts the app'
}

/** @type {typeof import('./guard').debug} */
let debug = () => {}
try {
  debug = require('util').debuglog('memwatch') // Node.js before 14.18 lacks the prefix node:
  const reason = reasonToStayOut()
  if (reason) {
    debug('off: %s', reason)
  } else {
    const config = require('./protocol/config').readConfig()
    if (config.disabled) {
      debug('off: MEMWATCH_DISABLED')
    } else {
      Object.defineProperty(global, RUNNING, {
        value: new (require('./begin').Lifecycle)(config, debug),
        configurable: true
      })
    }
  }
} catch (error) {
  debug('off: %s', error)
}
