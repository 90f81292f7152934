'use strict'

const http = require('node:http')
const { EXPORTER, LOOPBACK, PORT } = require('./places')

/**
 * @typedef {object} Ask
 * @property {string} from source address; a request from loopback also goes to loopback
 * @property {string} path
 * @property {string} [method]
 * @property {http.OutgoingHttpHeaders} [headers]
 * @property {number} [timeoutMs] time limit of the complete answer
 * @property {number} [mostBytes] upper bound of the stored bytes of the answer
 *
 * @typedef {{ status: number, headers: http.IncomingHttpHeaders, text: string, ms: number }} Answer
 */

/**
 * Sends one HTTP request on a connection of its own, like the kubelet.
 * @param {Ask} ask
 * @returns {Promise<Answer>}
 * @throws {Error} if no complete answer arrived in time
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
