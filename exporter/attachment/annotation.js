'use strict'

/**
 * Variable by which a process asks an exporter with --attach-annotated to attach. The agent does
 * not read it.
 */
const annotation = Object.freeze({
  env: 'MEMWATCH_ATTACH',
  default: '0',
  help: '1 asks an exporter with --attach-annotated to attach to this process. On pods an ' +
    'annotation sets the variable: docs/attach.md',
  /** @param {string} text */
  read (text) {
    if (!['0', '1', 'true', 'false'].includes(text)) throw new Error('expected 0 or 1')
    return text === '1' || text === 'true'
  }
})

module.exports = { annotation }
