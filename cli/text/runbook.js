'use strict'

const RUNBOOKS = 'https://github.com/memwatch/memwatch/blob/main/alerts/runbooks'

/**
 * @param {string} name name of an alert
 * @returns {string} URL of its runbook
 */
const runbookOf = name => `${RUNBOOKS}/${name}.md`

module.exports = { runbookOf }
