'use strict'

const http = require('node:http')
const { options, chooseText } = require('@memwatch/exporter/config')
const { err } = require('./output')

/** Longest possible timer, which keeps the process alive. */
const FOREVER_MS = 2 ** 31 - 1

/**
 * Runs the exporter under --on-failure stay: if it cannot start, it continues to run and only
 * reports the reason.
 * The readiness of a pod in Kubernetes includes its sidecars, so a sidecar that ends repeatedly
 * would remove the pod from its Services. Its liveness probe succeeds, because a restart would
 * change nothing. /metrics answers 503, so that Prometheus shows the exporter as down.
 *
 * @param {Error} error error of the start
 * @param {string} listen configured address
 * @returns {Promise<void>} resolves when the server listens, or when it cannot listen either
 */
async function stay ({ message }, listen) {
  err.say(
    `memwatch exporter: ${message}`,
    'memwatch exporter: startup failed; it keeps running without watching anything ' +
      `(${options.onFailure.env}=stay), so that the pod stays ready`
  )
  setInterval(() => {}, FOREVER_MS)
  const server = http.createServer((request, response) => {
    const isProbe = request.url === '/-/healthy'
    response
      .writeHead(isProbe ? 200 : 503, { 'content-type': 'text/plain; charset=utf-8' })
      .end(
        `${isProbe
? 'the exporter is alive, but does not watch ' +
          'anything'
: 'memwatch exporter could not start'}: ${message}\n`
      )
  })
  server.maxConnections = 100
  await new Promise(resolve => {
    server.once('error', problem => {
      err.say(`memwatch exporter: cannot report this at ${listen} either: ${problem.message}`)
      resolve(undefined)
    })
    const { host, port } = addressOf(listen)
    server.listen({ host, port }, () => resolve(undefined))
  })
}

/** @param {string} listen address; may be the invalid option itself */
function addressOf (listen) {
  try {
    return options.listen.read(listen)
  } catch {
    return options.listen.read(options.listen.default)
  }
}

/**
 * Reads only this option, because any other option may be invalid.
 * @param {{ onFailure?: string }} given given flags
 * @param {import('@memwatch/exporter/config').ConfigFile} [file]
 */
const staysOnFailure = (given, file) =>
  chooseText(options.onFailure, { given: given.onFailure, file }).text === 'stay'

module.exports = { stay, staysOnFailure }
