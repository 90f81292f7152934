#!/usr/bin/env node
'use strict'

/**
 * The command `memwatch` of the agent's package. The command line is a package of its own, as an
 * app in production does without it: this file starts it where it is installed, and else says how
 * to get it.
 */

const COMMAND_LINE = '@memwatch/cli'

/** @returns {string | undefined} its file; undefined where it is not installed */
function findCommandLine () {
  try {
    // Beside the agent, or in the project: some package managers keep each package apart.
    return require.resolve(`${COMMAND_LINE}/memwatch.js`, { paths: [__dirname, process.cwd()] })
  } catch {}
}

const file = findCommandLine()
if (file) {
  require(file).main()
} else {
  process.exitCode = 2
  process.stderr.write(
    `memwatch: the command line is not installed here. Run it once: npx ${COMMAND_LINE} run -- ` +
      `node app.js; or add it to the project: npm install --save-dev ${COMMAND_LINE}\n`
  )
}
