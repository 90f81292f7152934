'use strict'

const { ConfigError } = require('../config-error')
const { parseDestination } = require('./addresses')
const { createSend } = require('./send')

/**
 * @param {Partial<Pick<import('../config').Config,
 *   'shipTo' | 's3Endpoint' | 's3Region' | 'shipHttp' | 'shipCredentials'>>} config
 * @returns {import('./send').Send}
 * @throws {ConfigError} if the address of --ship-to or its credentials cannot be used
 */
function openDestination ({ shipTo = '', s3Endpoint, s3Region, shipHttp, shipCredentials }) {
  try {
    const options = { endpoint: s3Endpoint, region: s3Region, allowHttp: shipHttp }
    return createSend(parseDestination(shipTo, options), { credentialsFile: shipCredentials })
  } catch (error) {
    throw new ConfigError(`--ship-to: ${/** @type {Error} */ (error).message}`)
  }
}

module.exports = { openDestination }
