'use strict'

/**
 * Programs that start the app as a child of its own, by the path that Node.js runs: package
 * managers, pm2 with its daemon, and what runs an app anew after a change.
 */
const STARTERS = Object.freeze([
  /(^|[\\/])((npm|npx|yarn|yarnpkg|pnpm|pnpx|corepack)(-cli|-\d+(\.\d+)+)?(\.[cm]?js)?)$/,
  /(^|[\\/])pm2(-runtime|-dev|-docker)?$/,
  /pm2[\\/]lib[\\/]Daemon\.js$/,
  /[\\/]\.?bin[\\/](nodemon|tsx|nest)$/,
  /(^|[\\/])node_modules[\\/](nodemon[\\/]bin[\\/]nodemon|tsx[\\/]dist[\\/]cli|@nestjs[\\/]cli[\\/]bin[\\/]nest)\.[cm]?js$/
])
/** Next.js serves in its own process, but for `next dev`, which is the default. */
const NEXT = /[\\/]\.?bin[\\/]next$/

/**
 * @param {readonly string[]} argv as process.argv: Node.js, script, arguments
 * @returns {boolean} whether this process is no app, but starts one
 */
function startsApp ([, script = '', command = 'dev']) {
  return STARTERS.some(starter => starter.test(script)) ||
    (NEXT.test(script) && (command === 'dev' || command.startsWith('-')))
}

module.exports = { startsApp }
