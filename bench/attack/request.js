'use strict'

const http = require('node:http')
const { EXPORTER, LOOPBACK, PORT } = require('./places')

/**
 * @typedef {object} Ask
 * @property {string} from address that the request comes from; from loopback it goes to loopback
 * @property {string} path
 * @property {string} [method]
 * @property {http.OutgoingHttpHeaders} [headers]
 * @property {number} [timeoutMs] until the answer is complete
 * @property {number} [mostBytes] of the answer that are kept
 *
 * @typedef {{ status: number, headers: http.IncomingHttpHeaders, text: string, ms: number }} Answer
 */

/**
 * One HTTP request on a connection of its own, as the kubelet makes it.
 * @param {Ask} ask
 * @returns {Promise<Answer>}
 * @throws {Error} if no complete answer came in time
 */
function request ({ from, path, method = 'GET', headers, timeoutMs = 30_000, mostBytes = 2 ** 24 }) {
  const began = performance.now()
  const host = from === LOOPBACK ? LOOPBACK : EXPORTER
  return new Promise((resolve, reject) => {
    const asked = http.request({
      host,
      port: PORT,
      localAddress: from,
      path,
      method,
      headers,
      agent: false
    })
    const timer = setTimeout(
      () => asked.destroy(new Error(`no answer in ${timeoutMs / 1000} s`)),
      timeoutMs
    )
    asked.on('close', () => clearTimeout(timer))
    asked.on('error', reject)
    asked.on('response', response => {
      const { statusCode: status = 0, headers } = response
      let text = ''
      response.setEncoding('utf8').on('data', part => {
        if (text.length < mostBytes) text += part
      })
      response.on('error', reject)
      response.on('end', () => resolve({ status, headers, text, ms: performance.now() - began }))
    })
    asked.end()
  })
}

module.exports = { request }
