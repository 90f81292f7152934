'use strict'

const { shellWord } = require('../text/shell')

/** @typedef {Pick<import('@memwatch/agent/protocol/frame').Hello, 'name'>} Named */

/**
 * The command that takes a capture of a target. The app names itself: its name is quoted.
 * @param {Named} target
 * @param {'cpu_profile' | 'heap_profile'} kind
 */
const captureCommand = ({ name }, kind) => `memwatch capture ${shellWord(name)} ${kind}`

/**
 * The command that returns a target's free memory to the system.
 * @param {Named} target
 */
const trimCommand = ({ name }) => `memwatch trim ${shellWord(name)}`

module.exports = { captureCommand, trimCommand }
