'use strict'

const { PROTOCOL_VERSION } = require('./protocol/frame')
const { stringifyJson } = require('./primordials')

/**
 * @param {string} type
 * @param {object} content
 * @returns {string} a line of the wire contract; frames have a form of their own, in agent.js
 */
const encode = (type, content) => stringifyJson({ v: PROTOCOL_VERSION, type, ...content }) + '\n'

module.exports = { encode }
