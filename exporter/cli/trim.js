'use strict'

const fs = require('node:fs')
const { Command } = require('commander')
const { formatBytes, formatSeconds } = require('../text/format')
const { UsageError } = require('./usage-error')

const command = new Command('trim')
  .description('Have an app give the memory back that its malloc retains: malloc_trim(0), without a restart.')
  .argument('<target>', 'as memwatch_target_info and /api/v1/targets call it')
  .option('--url <URL>', 'where the exporter serves its API [MEMWATCH_URL]', process.env.MEMWATCH_URL || 'http://127.0.0.1:9888')
  .option('--token-file <FILE>', 'file with the token of the exporter, where it has one [MEMWATCH_TOKEN_FILE]')
  .option('--dry-run', 'say what would come back and how long it would block the app, and do nothing')
  .option('--json', 'print the answer as JSON on stdout, and nothing else')
  .allowExcessArguments(false)
  .addHelpText('after', `
The decisive test for fragmentation, and a first aid: what comes back was free. The app must have been started with
MEMWATCH_ALLOCATOR_ACCESS=trim. It stands still meanwhile, for the time that is printed beforehand.

Ends with 0; 1 when it was refused; 2 when the exporter cannot be reached or knows no such target.
Examples:
  $ memwatch trim shop --dry-run
  $ memwatch trim shop
  $ memwatch trim shop --url http://127.0.0.1:9888 --json`)
  .action(async (target, given) => { process.exitCode = await trim(target, given) })

/**
 * @param {string} target @param {{ url: string, tokenFile?: string, dryRun?: boolean, json?: boolean }} given
 * @returns {Promise<number>} exit status
 */
async function trim (target, given) {
  const tokenFile = given.tokenFile ?? process.env.MEMWATCH_TOKEN_FILE
  const headers = tokenFile ? { authorization: `Bearer ${readToken(tokenFile)}` } : undefined
  const url = apiUrl(given.url, target)
  const say = (/** @type {string} */ line) => { if (!given.json) process.stdout.write(line + '\n') }

  const before = await ask(url, '?dryRun=true', headers)
  if (before.refused) return refused(before)
  const { bytes, asked, blockedSeconds, blockedAtMostSeconds } = before.body.predicted
  say(`${target}: about ${formatBytes(bytes)} would come back${asked ? '' : ' (an estimate: malloc was not asked)'}. The app stands still meanwhile: about ${formatSeconds(blockedSeconds)}, up to ${formatSeconds(blockedAtMostSeconds)} were seen for so much.`)
  const { body, ...after } = given.dryRun ? before : await ask(url, '', headers)
  if (after.refused) return refused(after)
  if (body.done) {
    const { rssBeforeBytes, rssAfterBytes, blockedSeconds: blocked } = body.done
    say(`RSS from ${formatBytes(rssBeforeBytes)} to ${formatBytes(rssAfterBytes)}: ${formatBytes(Math.max(0, rssBeforeBytes - rssAfterBytes))} came back; the app stood still for ${formatSeconds(blocked)}.`)
  }
  if (given.json) process.stdout.write(JSON.stringify(body) + '\n')
  return 0
}

/** @param {{ refused?: string, status?: number }} answer @returns {number} exit status @throws {UsageError} */
function refused ({ refused = '', status }) {
  if (status === 404) throw new UsageError(refused)
  process.stderr.write(`memwatch trim: ${refused}\n`)
  return 1
}

/** @param {string} file @throws {UsageError} */
function readToken (file) {
  try {
    return fs.readFileSync(file, 'utf8').trim()
  } catch (error) {
    throw new UsageError(`--token-file: ${/** @type {Error} */ (error).message}`)
  }
}

/** @param {string} base @param {string} target @throws {UsageError} */
function apiUrl (base, target) {
  try {
    return new URL(`api/v1/targets/${encodeURIComponent(target)}/trim`, base.endsWith('/') ? base : `${base}/`)
  } catch {
    throw new UsageError(`--url: expected a URL such as http://127.0.0.1:9888, got ${JSON.stringify(base)}`)
  }
}

/**
 * @param {URL} url @param {string} query @param {Record<string, string> | undefined} headers
 * @returns {Promise<{ body: any, status: number, refused?: string }>} refused: what the exporter said, in words
 * @throws {UsageError} when no exporter answers
 */
async function ask (url, query, headers) {
  const response = await fetch(url + query, { method: 'POST', headers }).catch(error => {
    throw new UsageError(`--url: no exporter answers at ${url.origin}: ${error.cause?.message ?? error.message}`)
  })
  const { status } = response
  const body = /** @type {any} */ (await response.json().catch(() => ({})))
  return response.ok ? { body, status } : { body, status, refused: body.error?.message ?? `${url.origin} answered ${status}` }
}

module.exports = { command }
