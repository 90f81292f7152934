'use strict'

/**
 * Programs that start the app as a child process, by their path: package managers, pm2 with its
 * daemon, and watchers that restart an app after a change.
 */
const STARTERS = Object.freeze([
  /(^|[\\/])((npm|npx|yarn|yarnpkg|pnpm|pnpx|corepack)(-cli|-\d+(\.\d+)+)?(\.[cm]?js)?)$/,
  /(^|[\\/])pm2(-runtime|-dev|-docker)?$/,
  /pm2[\\/]lib[\\/]Daemon\.js$/,
  /[\\/]\.?bin[\\/](nodemon|tsx|nest)$/,
  /(^|[\\/])node_modules[\\/](nodemon[\\/]bin[\\/]nodemon|tsx[\\/]dist[\\/]cli|@nestjs[\\/]cli[\\/]bin[\\/]nest)\.[cm]?js$/
])
/** Next.js serves in its own process, except for `next dev`, its default. */
const NEXT = /[\\/]\.?bin[\\/]next$/

/**
 * @param {readonly string[]} argv process.argv: Node.js, script, arguments
 * @returns {boolean} true: this process starts the app, and is not the app
 */
function startsApp ([, script = '', command = 'dev']) {
  return STARTERS.some(starter => starter.test(script)) ||
    (NEXT.test(script) && (command === 'dev' || command.startsWith('-')))
}

module.exports = { startsApp }
