'use strict'

const { PROTOCOL_VERSION } = require('./protocol/frame')
const { stringifyJson } = require('./primordials')

/**
 * @param {string} type
 * @param {object} content
 * @returns {string} line of the wire contract; isolate-agent.js encodes frames itself
 */
const encode = (type, content) => stringifyJson({ v: PROTOCOL_VERSION, type, ...content }) + '\n'

module.exports = { encode }
