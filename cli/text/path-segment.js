'use strict'

const { wellFormed } = require('@memwatch/engine/text/json')

/**
 * A name as a segment of a path.
 * @param {string} name that an exporter listed, or a user typed
 */
const pathSegment = name => encodeURIComponent(wellFormed(name))

module.exports = { pathSegment }
