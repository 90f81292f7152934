'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { closest } = require('fastest-levenshtein')
const { createMemoryGroup } = require('@memwatch/exporter/process/memory-group')
const { diagnoses } = require('@memwatch/engine/diagnoses/index')
const { UsageError, readBytes, readSeconds } = require('../program/usage-error')

/**
 * @typedef {object} Given options in the form of commander
 * @property {string} [for]
 * @property {string} [load]
 * @property {string} repeat
 * @property {string} [memory]
 * @property {string} [diagnosis]
 * @property {string} [fix]
 * @property {string[]} [with]
 * @property {string} [keep]
 * @property {boolean} [json]
 *
 * @typedef {ReturnType<typeof readTryOptions>} TryOptions
 */

/** Smallest limit in which Node.js starts. */
const LEAST_BYTES = 64 * 2 ** 20

/**
 * Checks all options before the first run.
 * @param {Given} given
 * @throws {UsageError}
 */
function readTryOptions (given) {
  if (given.diagnosis !== undefined && !diagnoses.some(({ id }) => id === given.diagnosis)) {
    throw new UsageError(
      `--diagnosis: no diagnosis ${JSON.stringify(given.diagnosis)}; did you mean ${closest(
        given.diagnosis,
        diagnoses.map(({ id }) => id)
      )}?`
    )
  }
  return {
    forSeconds: given.for === undefined ? undefined : readSeconds('--for', given.for),
    load: given.load === undefined ? undefined : readLoad(given.load),
    repeat: readCount('--repeat', given.repeat),
    memoryBytes: given.memory === undefined ? undefined : readGroupBytes(given.memory),
    diagnosis: given.diagnosis,
    fixNumber: given.fix === undefined ? undefined : readCount('--fix', given.fix),
    named: given.with === undefined ? undefined : readNamed(given),
    keep: given.keep === undefined ? undefined : readKeep(given.keep)
  }
}

/**
 * @param {string} text command line for a shell
 * @throws {UsageError} for a file of results, which a shell would try to execute
 */
function readLoad (text) {
  if (!/^\S+\.json$/.test(text)) return text
  throw new UsageError(
    `--load: expected a command that sends load, got the file ${JSON.stringify(text)}; an ` +
      "example: --load 'autocannon -j -d 40 http://localhost:3000'"
  )
}

/**
 * @param {string} option
 * @param {string} text
 */
function readCount (option, text) {
  if (!/^[1-9]\d{0,2}$/.test(text)) {
    throw new UsageError(
      `${option}: expected a whole number from 1 on, got ${JSON.stringify(text)}`
    )
  }
  return Number(text)
}

/**
 * @param {string} text
 * @returns {number} bytes
 */
function readGroupBytes (text) {
  const bytes = readBytes('--memory', text)
  if (bytes < LEAST_BYTES) {
    throw new UsageError(`--memory: expected at least 64Mi, got ${JSON.stringify(text)}`)
  }
  const {
    supported,
    reason,
    path: directory
  } = createMemoryGroup({ limitBytes: bytes, name: 'try' })
  if (!supported) {
    throw new UsageError(
      `--memory: cannot create a memory cgroup on this machine: ${reason}. Omit --memory, and run ` +
        'memwatch in a container of that size'
    )
  }
  fs.rmdirSync(/** @type {string} */ (directory))
  return bytes
}

/**
 * Reads the change of --with, which memwatch applies for any finding.
 * @param {Given} given
 * @returns {{ flags: string[], env: Record<string, string> }}
 */
function readNamed ({ with: words = [], diagnosis, fix }) {
  if (diagnosis !== undefined || fix !== undefined) {
    throw new UsageError(
      `--with: cannot be combined with ${fix === undefined ? '--diagnosis' : '--fix'}, which ` +
        'selects another change'
    )
  }
  const flags = words.filter(word => word.startsWith('--'))
  const variables = words.filter(word => !word.startsWith('--')).map(word => {
    const [, name, value] = /^([A-Za-z_]\w*)=(.*)$/s.exec(word) ?? []
    if (name === undefined) {
      throw new UsageError(
        '--with: expected a flag of node such as --max-semi-space-size=16, or NAME=VALUE, got ' +
          `${JSON.stringify(word)}`
      )
    }
    return [name, value]
  })
  return { flags, env: Object.fromEntries(variables) }
}

/** @param {string} folder folder to create; it must not contain earlier runs */
function readKeep (folder) {
  try {
    for (const side of ['before', 'after']) {
      if (fs.existsSync(path.join(folder, side))) throw new Error(`${folder} already contains runs; choose a new folder`)
    }
    fs.mkdirSync(folder, { recursive: true })
    fs.accessSync(folder, fs.constants.W_OK)
    return path.resolve(folder)
  } catch (error) {
    throw new UsageError(`--keep: ${/** @type {Error} */ (error).message}`)
  }
}

module.exports = { readTryOptions }
