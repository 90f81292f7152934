'use strict'

const fs = require('node:fs')
const { Option } = require('commander')
const { clientOptions, chooseText } = require('@memwatch/exporter/config')
const { readConfigFile } = require('@memwatch/exporter/config-file')
const { UsageError } = require('./usage-error')

const { prometheusToken } = clientOptions

/** Option that names the file with the bearer token for Prometheus. */
const prometheusTokenOption = () =>
  new Option(prometheusToken.flag, `${prometheusToken.help} [${prometheusToken.env}]`)

/**
 * @param {string} file
 * @param {string} from option or variable that names the file
 * @returns {string} bearer token
 * @throws {UsageError} if the file cannot be read, or contains no token
 */
function readTokenFile (file, from) {
  try {
    const token = fs.readFileSync(file, 'utf8').trim()
    // A header cannot contain other characters.
    if (!/^[\x20-\x7e]+$/.test(token)) throw new Error(`expected a file with a token, got ${file}`)
    return token
  } catch (error) {
    throw new UsageError(`${from}: ${/** @type {Error} */ (error).message}`)
  }
}

/**
 * @param {string} [given] file given on the command line; it takes precedence over variable and
 *   config file
 * @returns {string | undefined} bearer token for Prometheus; undefined without a file
 * @throws {UsageError}
 */
function readPrometheusToken (given) {
  const configured = readConfigFile(undefined)
  const { text: file, from } = chooseText(prometheusToken, { given, file: configured })
  return file === '' ? undefined : readTokenFile(file, from)
}

module.exports = { prometheusTokenOption, readPrometheusToken, readTokenFile }
