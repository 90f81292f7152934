'use strict'

/**
 * A fix on one line, as it is pasted or read out: a label value, an alert, a log line.
 * @param {import('../diagnoses/define-diagnosis').Fix | undefined} fix
 * @returns {string} '' without a fix
 */
function pasteLine (fix) {
  if (!fix) return ''
  const { env, flag } = fix.change
  if (env) return Object.entries(env).map(([name, value]) => `${name}=${/[\s"']/.test(value) ? JSON.stringify(value) : value}`).join(' ')
  return flag ?? fix.title
}

module.exports = { pasteLine }
