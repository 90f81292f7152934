'use strict'

/** @typedef {import('node:http').IncomingMessage} IncomingMessage */
/** @typedef {import('node:http').ServerResponse} ServerResponse */

/**
 * Reads a JSON request body.
 * @param {IncomingMessage} request
 * @returns {Promise<any>}
 */
async function readJson (request) {
  let text = ''
  request.setEncoding('utf8')
  for await (const chunk of request) text += chunk
  return JSON.parse(text)
}

/**
 * @param {ServerResponse} response
 * @param {unknown} value
 * @param {number} [status]
 */
function sendJson (response, value, status = 200) {
  const body = JSON.stringify(value)
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body)
  })
  response.end(body)
}

module.exports = { readJson, sendJson }
