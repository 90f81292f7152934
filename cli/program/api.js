'use strict'

const { options, clientOptions, chooseText } = require('@memwatch/exporter/config')
const { readConfigFile } = require('@memwatch/exporter/config-file')
const { readTokenFile } = require('./token-file')
const { UsageError } = require('./usage-error')

/**
 * Options in the form of commander.
 * @typedef {object} ApiOptions
 * @property {string} url
 * @property {string} [tokenFile]
 * @property {number} [timeoutMs] time limit of an answer; default: none
 * @property {typeof globalThis.fetch} [fetch] default: fetch of Node.js
 */

/** Error for an exporter that does not answer. */
class NoExporterError extends UsageError {
  /**
   * @param {URL} url
   * @param {string} reason
   * @param {string} [advice]
   */
  constructor (url, reason, advice) {
    super(`--url: no exporter answers at ${url.origin}: ${reason}${advice ? `; ${advice}` : ''}`)
    this.reason = reason
  }
}

const START_ONE =
  'start one with memwatch exporter, or name its address with --url or MEMWATCH_URL'

/** Error for an exporter that refuses a request. Its message comes from the exporter. */
class RefusedError extends UsageError {}

/**
 * Adds the options of commands that call an exporter.
 * @param {import('commander').Command} command
 */
function withApiOptions (command) {
  const { url, config } = clientOptions
  return command
    .option(url.flag, `${url.help} [${url.env}] (default: ${url.default})`)
    .option(
      options.token.flag,
      `file with the token of the exporter, if it requires one [${options.token.env}]`
    )
    .option(config.flag, `${config.help} [${config.env}] (default: ${config.default})`)
    .hook('preAction', addConfigured)
}

/**
 * Fills in options from variables and the config file.
 * @param {import('commander').Command} command command that will be executed next
 * @throws {import('@memwatch/exporter/config').ConfigError}
 */
function addConfigured (command) {
  const given = command.opts()
  const file = readConfigFile(given.config)
  for (const option of [clientOptions.url, options.token]) {
    const { text } = chooseText(option, { given: given[option.key], file })
    if (text !== '') command.setOptionValue(option.key, text)
  }
}

/**
 * Calls an exporter's API.
 * @param {ApiOptions} options
 * @param {string} path below /api/v1/
 * @param {'GET' | 'POST'} [method]
 * @returns {Promise<{ body: any, status: number, refused?: string }>} refused: the detail of the
 *   problem
 * @throws {UsageError} if no exporter answers
 */
async function callApi (options, path, method = 'GET') {
  const response = await request(options, path, method)
  const { status, ok, url } = response
  const body = /** @type {any} */ (await response.json().catch(() => ({})))
  return ok
    ? { body, status }
    : { body, status, refused: body.detail ?? `${url} answered ${status}` }
}

/**
 * Requests a whole list, page by page.
 * @param {ApiOptions} options
 * @param {string} path below /api/v1/
 * @returns {Promise<any[]>}
 * @throws {UsageError} if no exporter answers, or if it refuses
 */
async function callList (options, path) {
  const items = []
  for (let next = /** @type {string | undefined} */ (path); next !== undefined;) {
    const response = await request(options, next, 'GET')
    const body = /** @type {any} */ (await response.json().catch(() => ({})))
    if (!response.ok) {
      throw new RefusedError(body.detail ?? `${response.url} answered ${response.status}`)
    }
    items.push(...body)
    next = /<[^>]*\/api\/v1\/([^>]*)>; rel="next"/.exec(response.headers.get('link') ?? '')?.[1]
  }
  return items
}

/**
 * Requests an answer that is not JSON, or is large.
 * @param {ApiOptions} options
 * @param {string} path below /api/v1/
 * @returns {Promise<{ body: any, refused?: string }>} body: a web stream
 * @throws {UsageError} if no exporter answers
 */
async function openApi (options, path) {
  const response = await request(options, path, 'GET')
  return response.ok ? { body: response.body } : { body: undefined, refused: /** @type {any} */ (await response.json().catch(() => ({}))).detail ?? `${response.url} answered ${response.status}` }
}

/**
 * @param {ApiOptions} options
 * @param {string} path below /api/v1/
 * @param {'GET' | 'POST'} method
 */
async function request (options, path, method) {
  const { url: base, tokenFile, timeoutMs, fetch = globalThis.fetch } = options
  const url = apiUrl(base, path)
  const token = tokenFile ? readTokenFile(tokenFile, '--token-file') : undefined
  const headers = token === undefined ? undefined : { authorization: `Bearer ${token}` }
  const signal = timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs)
  return await fetch(url, { method, headers, signal }).catch(error => {
    const { code, message } = error.cause ?? error
    throw code === 'ECONNREFUSED'
      ? new NoExporterError(url, 'connection refused', START_ONE)
      : new NoExporterError(url, message || code)
  })
}

/**
 * @param {string} base
 * @param {string} path
 * @throws {UsageError}
 */
function apiUrl (base, path) {
  try {
    return new URL(`api/v1/${path}`, base.endsWith('/') ? base : `${base}/`)
  } catch {
    throw new UsageError(
      `--url: expected a URL such as ${clientOptions.url.default}, got ${JSON.stringify(base)}`
    )
  }
}

module.exports = {
  NoExporterError, RefusedError, withApiOptions, callApi, callList, openApi
}
