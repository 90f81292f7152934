'use strict'

/**
 * The preload: `node -r memwatch/agent app.js`. The only file with side effects. It starts the agent once per isolate, or
 * does nothing; it never throws.
 */

const { debug } = require('./guard')

/** Two installed copies share this: the first one watches. */
const RUNNING = Symbol.for('memwatch.agent')

/** What starts the app as a child of its own is not the app: package managers, and pm2 with its daemon. */
const STARTERS = /(^|[\\/])((npm|npx|yarn|yarnpkg|pnpm|pnpx|corepack)(-cli)?(\.[cm]?js)?|pm2(-runtime|-dev|-docker)?|pm2[\\/]lib[\\/]Daemon\.js)$/

/** @returns {string | undefined} why this process is left alone */
function reasonToStayOut () {
  if (/** @type {any} */ (globalThis)[RUNNING]) return 'another copy of the agent runs in this isolate'
  if (process.versions.bun || /** @type {any} */ (process.versions).deno) return 'not Node.js'
  if (process.argv[1] && STARTERS.test(process.argv[1])) return 'it starts the app'
}

try {
  const reason = reasonToStayOut()
  if (reason) {
    debug('off: %s', reason)
  } else {
    const config = require('./config').readConfig()
    if (config.disabled) {
      debug('off: MEMWATCH_DISABLED')
    } else {
      Object.defineProperty(globalThis, RUNNING, { value: require('./agent').start(config), enumerable: false })
    }
  }
} catch (error) {
  debug('off: %s', error)
}
