'use strict'

const { shellAssignments, shellWords } = require('../text/shell')

/**
 * A fix on one line, to paste into a shell: for a label value, an alert or a log line.
 * @param {import('../diagnoses/define-diagnosis').Fix | undefined} fix
 * @returns {string} '' without a fix
 */
function pasteLine (fix) {
  if (!fix) return ''
  const { env, flag } = fix.change
  if (env) return shellAssignments(env).join(' ')
  return flag === undefined ? fix.title : shellWords(flag)
}

module.exports = { pasteLine }
