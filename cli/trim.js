'use strict'

const { Command } = require('commander')
const { formatBytes, formatSeconds } = require('@memwatch/engine/text/format')
const { withApiOptions, callApi } = require('./program/api')
const { pathSegment } = require('./text/path-segment')
const { out, err } = require('./program/output')
const { UsageError } = require('./program/usage-error')

const command = withApiOptions(new Command('trim'))
  .description(
    'Return the memory that the malloc of an app retains: malloc_trim(0), without a restart.'
  )
  .argument('<target>', 'name of the target, as memwatch top lists it')
  .option(
    '--dry-run',
    'only predict the returned bytes and the pause of the app'
  )
  .option('--json', 'print the answer as JSON on stdout, and nothing else')
  .allowExcessArguments(false)
  .addHelpText(
    'after',
    `
Only free memory can be returned: trim proves fragmentation, and helps until the fix is deployed.
The app must have been started with MEMWATCH_ALLOCATOR_ACCESS=trim. trim pauses the app; --dry-run
predicts the pause.

Exit status: 0; 1 when trim was refused; 2 when the exporter cannot be reached or the target does
not exist.

Examples:
  $ memwatch trim shop --dry-run
  $ memwatch trim shop
  $ memwatch trim shop --url http://127.0.0.1:16369 --json`
  )
  .action(async (target, given) => {
    process.exitCode = await trim(target, given)
  })

/**
 * @param {string} target
 * @param {import('./program/api').ApiOptions & { dryRun?: boolean, json?: boolean }} given
 * @returns {Promise<number>} exit status
 */
async function trim (target, given) {
  const path = `targets/${pathSegment(target)}/trim`
  const say = (/** @type {string} */ line) => { if (!given.json) out.say(line) }

  const before = await callApi(given, `${path}?dryRun=true`, 'POST')
  if (before.refused) return refused(before)
  const { bytes, asked, blockedSeconds, blockedAtMostSeconds } = before.body.predicted
  say(
    `${target}: malloc would return about ` +
      `${formatBytes(bytes)}${asked ? '' : " (an estimate: malloc's statistics were not read)"}. ` +
      `The app pauses for about ${formatSeconds(blockedSeconds)}; the longest measured pause for ` +
      `this amount was ${formatSeconds(blockedAtMostSeconds)}.`
  )
  const { body, ...after } = given.dryRun ? before : await callApi(given, path, 'POST')
  if (after.refused) return refused(after)
  if (body.done) {
    const { rssBeforeBytes, rssAfterBytes, blockedSeconds: blocked } = body.done
    say(
      `RSS from ${formatBytes(rssBeforeBytes)} to ${formatBytes(rssAfterBytes)}: malloc returned ` +
        `${formatBytes(Math.max(0, rssBeforeBytes - rssAfterBytes))}; the app paused for ` +
        `${formatSeconds(blocked)}.`
    )
  }
  if (given.json) out.json(body)
  return 0
}

/**
 * @param {{ refused?: string, status?: number }} answer
 * @returns {number} exit status
 * @throws {UsageError}
 */
function refused ({ refused = '', status }) {
  if (status === 404) throw new UsageError(refused)
  err.say(`memwatch trim: ${refused}`)
  return 1
}

module.exports = { command }
