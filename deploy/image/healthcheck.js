'use strict'

/**
 * Docker's health check of the exporter in this container: `node healthcheck.js`. The image needs
 * no curl for it. The check ends with 0, or with 1 if the exporter does not answer. It reads the
 * address from MEMWATCH_LISTEN, because it cannot see a `--listen` on the command line.
 */

const http = require('node:http')

const TIMEOUT_MS = 2500
const [, host, port] = /^(.*):(\d+)$/.exec(process.env.MEMWATCH_LISTEN || '127.0.0.1:16369') ?? []
// A server on all addresses answers on loopback.
const address =
  host === '0.0.0.0' ? '127.0.0.1' : host === '[::]' ? '::1' : host?.replace(/^\[|\]$/g, '')

http
  .get({ host: address, port, path: '/-/healthy', timeout: TIMEOUT_MS }, ({ statusCode }) =>
    process.exit(statusCode === 200 ? 0 : 1)
  )
  .on('timeout', () => process.exit(1))
  .on('error', () => process.exit(1))
