#!/usr/bin/env node
'use strict'

/**
 * The command `memwatch` of the agent's package. It starts the command line, a separate package
 * that an app in production does not need, or reports the command that installs it.
 */

const COMMAND_LINE = '@memwatch/cli'

/** @returns {string | undefined} path; undefined: not installed */
function findCommandLine () {
  try {
    // It is beside the agent or in the project, as some package managers isolate each package.
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
