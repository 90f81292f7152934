'use strict'

const { toYaml } = require('../text/yaml')
const { containerFields } = require('./forms')
const { nodeFlagChange } = require('./node-flag')

/** @typedef {import('../diagnoses/define-diagnosis').Change} Change */

/** Placeholder for a process known only by its metrics. */
const UNKNOWN_PROCESS = Object.freeze({
  nodeOptions: [],
  execArgv: [],
  allowedFlags: ['--max-old-space-size', '--max-semi-space-size']
})
/**
 * Flags that --max-old-space-size replaces: V8 exits at start if certain of them are given
 * together.
 */
const REPLACED = /^--max[-_](old[-_]space[-_]size[-_]percentage|heap[-_]size)(=|$)/

/**
 * Turns the sizes of a workload into a change with all its forms.
 * @param {import('../v8/right-size').Sizes} sizes
 * @param {import('@memwatch/agent/protocol/frame').Hello} [hello] absent if the source has none
 * @returns {Change}
 */
function changeSizes ({ requestBytes, limitBytes, flags }, hello) {
  const target = hello ?? /** @type {any} */ (UNKNOWN_PROCESS)
  const change = Object.keys(flags).length === 0
    ? {}
    : nodeFlagChange({
      ...target,
      nodeOptions: target.nodeOptions.filter((/** @type {string} */ option) => !REPLACED.test(option))
    }, flags)
  return {
    ...change,
    memoryLimitBytes: limitBytes,
    memoryRequestBytes: requestBytes,
    ...(!hello && change.env && {
      note: 'NODE_OPTIONS of the app is unknown here: add its other options.'
    })
  }
}

/**
 * Values of a Helm chart whose keys are those of a container: resources and env.
 * @param {Change} change
 * @param {readonly string[]} comments lines above the values
 * @returns {string} YAML
 */
const helmValues = (change, comments) =>
  toYaml(containerFields(change), [...comments, ...(change.note ? [change.note] : [])])

module.exports = { changeSizes, helmValues }
