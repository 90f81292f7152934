'use strict'

const os = require('node:os')
const { splitNodeOptions } = require('@memwatch/agent/protocol/node-options')
const { readMemory } = require('@memwatch/engine/text/quantity')
const { readNodeVersion } = require('@memwatch/engine/v8/node-versions')

/** Upper bound of values for an argument: people need no more rows. */
const MOST_VALUES = 20
const MOST_FLAGS_LENGTH = 4096

/** Error for an invalid argument of a plan. */
class PlanArgumentError extends Error {
  /**
   * @param {keyof PlanArguments | 'target'} argument
   * @param {string} message
   */
  constructor (argument, message) {
    super(message)
    this.argument = argument
  }
}

/**
 * Arguments of the command line and the API, as text. Lists are separated by commas, or given by
 * repeating the argument.
 * @typedef {object} PlanArguments
 * @property {string[]} [node]
 * @property {string[]} [memory]
 * @property {string} [flags]
 * @property {string} [hostMemory]
 * @property {string} [cgroup]
 */

/**
 * @param {PlanArguments} given
 * @param {{ machineBytes?: number, ofTarget?: boolean }} [options] machineBytes: memory of this
 *   machine; ofTarget: true if missing values come from the target
 * @returns {{ versions: import('@memwatch/engine/v8/node-versions').NodeVersion[], memoryLimits: (number |
 *   null)[], nodeOptions: string[], host: import('@memwatch/engine/v8/plan-case').Host, cgroup: 'v1' | 'v2' |
 *   undefined }}
 * @throws {PlanArgumentError}
 */
function readPlanArguments (
  { node, memory, flags = '', hostMemory, cgroup },
  { machineBytes = os.totalmem(), ofTarget = false } = {}
) {
  const versions = readList('node', node, readNodeVersion)
  const memoryLimits = /** @type {(number | null)[]} */ (readList('memory', memory, readMemory))
  const host =
    hostMemory === undefined
      ? { bytes: machineBytes, given: false }
      : { bytes: readOne('hostMemory', hostMemory, readMemory), given: true }
  if (cgroup !== undefined && cgroup !== 'v1' && cgroup !== 'v2') {
    throw new PlanArgumentError('cgroup', `expected v1 or v2, got ${JSON.stringify(cgroup)}`)
  }
  if (!ofTarget && versions.length === 0) {
    throw new PlanArgumentError('node', 'expected versions of Node.js such as 20,24, or a target, got neither')
  }
  if (!ofTarget && memoryLimits.length === 0) {
    if (!host.given) {
      throw new PlanArgumentError(
        'memory',
        'expected the memory limit of the container such as 512Mi, or the host memory of a process ' +
          'without a limit, got neither'
      )
    }
    memoryLimits.push(null)
  }
  return { versions, memoryLimits, nodeOptions: readFlags(flags), host, cgroup }
}

/**
 * @template T
 * @param {keyof PlanArguments} argument
 * @param {string[] | undefined} texts
 * @param {(text: string) => T} read
 * @returns {T[]}
 */
function readList (argument, texts = [], read) {
  const values = texts.flatMap(text => text.split(','))
  if (values.length > MOST_VALUES) {
    throw new PlanArgumentError(
      argument,
      `expected at most ${MOST_VALUES} values, got ${values.length}`
    )
  }
  return values.map(value => readOne(argument, value, read))
}

/**
 * @template T
 * @param {keyof PlanArguments} argument
 * @param {string} text
 * @param {(text: string) => T} read
 */
function readOne (argument, text, read) {
  try {
    return read(text)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new PlanArgumentError(argument, error.message)
  }
}

/** Splits flags as in NODE_OPTIONS. @param {string} text text in the form of NODE_OPTIONS */
function readFlags (text) {
  if (text.length > MOST_FLAGS_LENGTH) {
    throw new PlanArgumentError(
      'flags',
      `expected at most ${MOST_FLAGS_LENGTH} characters, got ${text.length}`
    )
  }
  const words = splitNodeOptions(text.trim())
  const stray = words.find(
    (word, i) =>
      !word.startsWith('-') &&
      (i === 0 || !words[i - 1].startsWith('-') || words[i - 1].includes('='))
  )
  if (stray === undefined) return words
  throw new PlanArgumentError(
    'flags',
    'expected flags in the form of NODE_OPTIONS, such as --max-old-space-size=384, got ' +
      `${JSON.stringify(stray)}`
  )
}

module.exports = { readPlanArguments, PlanArgumentError }
