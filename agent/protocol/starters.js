'use strict'

/**
 * Programs that start the app as a child of its own: package managers, and pm2 with its daemon. The
 * agent leaves them alone.
 */
const STARTERS =
  /(^|[\\/])((npm|npx|yarn|yarnpkg|pnpm|pnpx|corepack)(-cli)?(\.[cm]?js)?|pm2(-runtime|-dev|-docker)?|pm2[\\/]lib[\\/]Daemon\.js)$/

/**
 * @param {readonly string[]} argv of a process, as process.argv has it
 * @returns {boolean} whether it is no app, but starts one
 */
function startsApp (argv) {
  return argv.length > 1 && STARTERS.test(argv[1])
}

module.exports = { startsApp }
