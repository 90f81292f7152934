'use strict'

const os = require('node:os')
const path = require('node:path')

/**
 * Folder outside the repository for tools that tests and proofs build. The variable
 * TEST_TOOLS replaces it.
 * @returns {string} absolute path; it need not exist
 */
const toolsFolder = () =>
  path.resolve(
    process.env.TEST_TOOLS ||
      path.join(process.env.XDG_CACHE_HOME || path.join(os.homedir(), '.cache'), 'memwatch-tools')
  )

module.exports = { toolsFolder }
