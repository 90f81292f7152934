'use strict'

const net = require('node:net')
const path = require('node:path')
const { fileURLToPath } = require('node:url')

/**
 * Destination to which captures are sent.
 * @typedef {{ kind: 'folder', folder: string } | { kind: 'put', url: URL } |
 *   { kind: 's3', url: URL, region: string }} Destination url: without a final slash; s3: with the
 *   bucket
 */

/** Prefixes that need no escapes in paths, URLs and signatures. */
const PREFIX = /^[\w.-]+(\/[\w.-]+)*$/
/** https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html */
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
const REGION = /^[a-z0-9-]{1,32}$/
const EXAMPLES = 'file:///var/captures, https://store.example.com/captures or s3://bucket/captures'

/**
 * @param {string} text of --ship-to
 * @param {object} [options]
 * @param {URL} [options.endpoint] address of an S3-compatible storage; default: AWS
 * @param {string} [options.region]
 * @param {boolean} [options.allowHttp] allow unencrypted requests to other machines
 * @returns {Destination}
 * @throws {Error} names the expected form
 */
function parseDestination (text, { endpoint, region = 'us-east-1', allowHttp = false } = {}) {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || url.username || url.password || url.search || url.hash) {
    // The error does not quote the text, which may contain a password.
    throw new Error(`expected an address without credentials and query, such as ${EXAMPLES}`)
  }
  switch (url.protocol) {
    case 'file:': return { kind: 'folder', folder: path.resolve(fileURLToPath(url)) }
    case 'http:':
    case 'https:': {
      expectPrefix(url.pathname.slice(1))
      return { kind: 'put', url: expectEncrypted(trimSlash(url), allowHttp) }
    }
    case 's3:': {
      const bucket = url.hostname
      if (!BUCKET.test(bucket)) throw new Error(`expected the name of a bucket, got ${bucket}`)
      if (!REGION.test(region)) throw new Error(`expected a region such as eu-west-1, got ${region}`)
      const prefix = trimSlash(url).pathname.slice(1)
      expectPrefix(prefix)
      const base = endpoint ?? new URL(`https://s3.${region}.amazonaws.com`)
      const at = new URL(`/${[bucket, prefix].filter(Boolean).join('/')}`, base)
      return { kind: 's3', url: expectEncrypted(at, allowHttp), region }
    }
    default: throw new Error(`expected an address such as ${EXAMPLES}, got ${url.protocol}`)
  }
}

/** @param {string} prefix of all keys */
function expectPrefix (prefix) {
  const trimmed = prefix.replace(/\/$/, '')
  if (trimmed === '') return
  if (!PREFIX.test(trimmed) || trimmed.split('/').some(part => /^\.+$/.test(part))) {
    throw new Error(`expected a path of letters, digits, ".", "_" and "-", got ${prefix}`)
  }
}

/** @param {URL} url */
function trimSlash (url) {
  const trimmed = new URL(url)
  trimmed.pathname = trimmed.pathname.replace(/\/$/, '')
  return trimmed
}

/**
 * @param {URL} url
 * @param {boolean} allowHttp
 */
function expectEncrypted (url, allowHttp) {
  if (url.protocol === 'https:' || allowHttp || isLoopback(url.hostname)) return url
  throw new Error(
    'http:// sends captures without encryption: choose https://, or allow http:// with ' +
      '--ship-http on'
  )
}

/** @param {string} host of a URL */
function isLoopback (host) {
  const name = host.replace(/^\[|\]$/g, '')
  return name === 'localhost' || name === '::1' || (net.isIPv4(name) && name.startsWith('127.'))
}

/**
 * @param {string} text of --s3-endpoint
 * @returns {URL | undefined} undefined for AWS
 * @throws {Error}
 */
function parseEndpoint (text) {
  if (text === '') return undefined
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.search || url.pathname !== '/') {
    throw new Error('expected the URL of a server, such as https://minio.example.com:9000')
  }
  return url
}

module.exports = { parseDestination, parseEndpoint }
