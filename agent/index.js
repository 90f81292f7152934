'use strict'

/**
 * The preload: `node -r memwatch/agent app.js`. The only file with side effects. It starts the
 * agent once per isolate, or does nothing; it never throws. Whoever preloads it into everything
 * meets old Node.js, too: this file must parse there, and what it loads may not: then that is all
 * that happens.
 */

/** Two installed copies share this: the first one watches. */
const RUNNING = Symbol.for('memwatch.agent')

/** @returns {string | undefined} why this process is left alone */
function reasonToStayOut () {
  if (/** @type {any} */ (global)[RUNNING]) return 'another copy of the agent runs in this isolate'
  if (process.versions.bun || /** @type {any} */ (process.versions).deno) return 'not Node.js'
  if (require('./protocol/starters').startsApp(process.argv)) return 'it starts the app'
}

/** @type {(format: string, ...values: unknown[]) => void} */
let debug = () => {}
try {
  debug = require('util').debuglog('memwatch') // Node.js before 14.18 knows no node:
  const reason = reasonToStayOut()
  if (reason) {
    debug('off: %s', reason)
  } else {
    const config = require('./protocol/config').readConfig()
    if (config.disabled) {
      debug('off: MEMWATCH_DISABLED')
    } else {
      Object.defineProperty(global, RUNNING, {
        value: require('./begin').begin(config, debug),
        enumerable: false
      })
    }
  }
} catch (error) {
  debug('off: %s', error)
}
