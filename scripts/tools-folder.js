'use strict'

const os = require('node:os')
const path = require('node:path')

/**
 * Folder for tools that tests and proofs build: outside of the repository. TEST_TOOLS names
 * another.
 * @returns {string} absolute path; it need not exist
 */
const toolsFolder = () =>
  path.resolve(
    process.env.TEST_TOOLS ||
      path.join(process.env.XDG_CACHE_HOME || path.join(os.homedir(), '.cache'), 'memwatch-tools')
  )

module.exports = { toolsFolder }
