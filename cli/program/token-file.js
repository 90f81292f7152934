'use strict'

const fs = require('node:fs')
const { Option } = require('commander')
const { clientOptions, chooseText } = require('@memwatch/exporter/config')
const { readConfigFile } = require('@memwatch/exporter/config-file')
const { UsageError } = require('./usage-error')

const { prometheusToken } = clientOptions

/** Option of each command that asks a Prometheus and nothing else. */
const prometheusTokenOption = () =>
  new Option(prometheusToken.flag, `${prometheusToken.help} [${prometheusToken.env}]`)

/**
 * @param {string} file
 * @param {string} from option or variable that names it
 * @returns {string} bearer token
 * @throws {UsageError} if the file cannot be read, or holds no token
 */
function readTokenFile (file, from) {
  try {
    const token = fs.readFileSync(file, 'utf8').trim()
    // Other characters cannot stand in a header.
    if (!/^[\x20-\x7e]+$/.test(token)) throw new Error(`expected a file with a token, got ${file}`)
    return token
  } catch (error) {
    throw new UsageError(`${from}: ${/** @type {Error} */ (error).message}`)
  }
}

/**
 * @param {string} [given] file on the command line, before the variable and the configuration file
 * @returns {string | undefined} bearer token of the Prometheus; undefined without a file
 * @throws {UsageError}
 */
function readPrometheusToken (given) {
  const configured = readConfigFile(undefined)
  const { text: file, from } = chooseText(prometheusToken, { given, file: configured })
  return file === '' ? undefined : readTokenFile(file, from)
}

module.exports = { prometheusTokenOption, readPrometheusToken, readTokenFile }
