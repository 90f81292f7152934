'use strict'

const fs = require('node:fs')

/**
 * Does a terminal send Ctrl-C to this process? It sends it to its whole foreground group, and so to
 * a child of this process as well, even if stdin is a file.
 * @param {() => string} [readStat] content of /proc/self/stat: proc(5)
 * @returns {boolean} without /proc: true if stdin is a terminal
 */
function isInForeground (readStat = () => fs.readFileSync('/proc/self/stat', 'latin1')) {
  try {
    // The name of the command, in parentheses, may contain spaces and parentheses.
    const stat = readStat()
    const [, , group, , , foregroundGroup] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return group === foregroundGroup
  } catch {
    return process.stdin.isTTY === true
  }
}

module.exports = { isInForeground }
