'use strict'

const { wellFormed } = require('@memwatch/engine/text/json')

/**
 * Encodes a name as a segment of a URL's path.
 * @param {string} name name listed by an exporter, or typed by a user
 */
const pathSegment = name => encodeURIComponent(wellFormed(name))

module.exports = { pathSegment }
