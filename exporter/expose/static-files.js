'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { createGzip } = require('node:zlib')
const { refuse } = require('./problems')

const MEDIA_TYPES = /** @type {Record<string, string>} */ ({
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.wasm': 'application/wasm'
})
const COMPRESSED = /^(text|image\/svg|application\/wasm)/

/**
 * Lists the files of a folder with known MIME types. Only listed names are served, so no path leads
 * out of the folder.
 * @param {string} folder
 * @returns {Map<string, string>} paths by name
 */
function filesIn (folder) {
  return new Map(
    fs
      .readdirSync(folder)
      .filter(name => MEDIA_TYPES[path.extname(name)])
      .map(name => [name, path.join(folder, name)])
  )
}

/**
 * Sends a file from disk, compressed if the browser accepts it. The browser revalidates its copy at
 * each use.
 * @param {import('fastify').FastifyRequest} request
 * @param {import('fastify').FastifyReply} reply
 * @param {string | undefined} file path of the file; undefined is answered by 404
 * @param {string} policy value of the header Content-Security-Policy
 */
function sendFile (request, reply, file, policy) {
  if (!file) return refuse(reply, 'not_found', 'no such file')
  const { mtimeMs, size } = fs.statSync(file)
  const etag = `W/"${size.toString(36)}-${Math.floor(mtimeMs).toString(36)}"`
  const mediaType = MEDIA_TYPES[path.extname(file)]
  reply
    .type(mediaType)
    .header('content-security-policy', policy)
    .header('x-content-type-options', 'nosniff')
    .header('referrer-policy', 'no-referrer')
    .header('cache-control', 'no-cache')
    .header('etag', etag)
    .header('vary', 'accept-encoding')
  if (request.headers['if-none-match'] === etag) return reply.code(304).send()
  const stream = fs.createReadStream(file)
  return COMPRESSED.test(mediaType) ? sendCompressed(request, reply, stream) : reply.send(stream)
}

/**
 * @param {import('fastify').FastifyRequest} request
 * @param {import('fastify').FastifyReply} reply
 * @param {import('node:stream').Readable} stream stream; compressed if the browser accepts it
 */
function sendCompressed (request, reply, stream) {
  if (!/\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) return reply.send(stream)
  return reply.header('content-encoding', 'gzip').send(stream.pipe(createGzip()))
}

module.exports = { filesIn, sendCompressed, sendFile }
