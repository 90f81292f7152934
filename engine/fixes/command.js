'use strict'

const { shellWord } = require('../text/shell')

/** @typedef {Pick<import('@memwatch/agent/protocol/frame').Hello, 'name'>} Named */

/**
 * Command that captures a target. The app chooses its own name, so the name is quoted.
 * @param {Named} target
 * @param {'cpu_profile' | 'heap_profile'} kind
 */
const captureCommand = ({ name }, kind) => `memwatch capture ${shellWord(name)} ${kind}`

/**
 * Command that returns a target's free memory to the operating system.
 * @param {Named} target
 */
const trimCommand = ({ name }) => `memwatch trim ${shellWord(name)}`

module.exports = { captureCommand, trimCommand }
