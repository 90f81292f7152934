'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { pipeline } = require('node:stream/promises')
const { makeFolder } = require('../make-folder')
const { ExactLength } = require('./exact-length')
const { readAwsKeys, readBearer } = require('./credentials')
const { put } = require('./put')

/**
 * @typedef {object} Body
 * @property {number} bytes
 * @property {string} sha256 hex
 * @property {string} mediaType
 * @property {() => import('node:stream').Readable} open opens a new stream of the file
 *
 * @typedef {(key: string, body: Body, signal: AbortSignal) => Promise<void>} Send sends an object,
 *   and replaces an existing object with the same key. It rejects with an error whose `isFinal` is
 *   true if another attempt would fail the same way
 *
 * @typedef {{ credentialsFile?: string, idleMs?: number }} Options idleMs: time limit without
 *   progress
 */

/**
 * @param {string} folder
 * @returns {Send}
 */
const createFolderSend = folder => async (key, body, signal) => {
  const file = path.join(folder, key)
  makeFolder(path.dirname(file))
  const unfinished = `${file}.part`
  fs.rmSync(unfinished, { force: true })
  const length = new ExactLength(body.bytes)
  const output = fs.createWriteStream(unfinished, { flags: 'wx', mode: 0o600, flush: true })
  await pipeline(body.open(), chunks => length.pass(chunks), output, { signal })
  fs.renameSync(unfinished, file)
}

/**
 * @param {URL} base
 * @param {Options} options
 * @returns {Send}
 */
const createPutSend = (base, { credentialsFile, idleMs }) => (key, body, signal) => {
  const token = readBearer(credentialsFile)
  /** @type {Record<string, string>} */
  const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` }
  const url = new URL(`${base.pathname.replace(/\/$/, '')}/${key}`, base)
  return put(url, { headers, body, signal, idleMs })
}

/**
 * @param {{ url: URL, region: string }} bucket
 * @param {Options} options
 * @returns {Send}
 */
const createS3Send = ({ url: base, region }, options) => async (key, body, signal) => {
  const { credentialsFile, idleMs } = options
  const { signS3 } = require('./sign-s3')
  const url = new URL(`${base.pathname}/${key}`, base)
  const headers = signS3(url, { region, body, keys: readAwsKeys(credentialsFile) })
  await put(url, { headers, body, signal, idleMs })
}

/**
 * @param {import('./addresses').Destination} destination
 * @param {Options} [options]
 * @returns {Send}
 * @throws {Error} if the credentials are missing or unreadable
 */
function createSend (destination, options = {}) {
  const { credentialsFile } = options
  switch (destination.kind) {
    case 'folder': return createFolderSend(destination.folder)
    case 'put':
      readBearer(credentialsFile)
      return createPutSend(destination.url, options)
    case 's3':
      readAwsKeys(credentialsFile)
      return createS3Send(destination, options)
  }
}

module.exports = { createSend }
