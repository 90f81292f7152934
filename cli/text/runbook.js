'use strict'

const RUNBOOKS = 'https://github.com/memwatch/memwatch/blob/main/alerts/runbooks'

/**
 * @param {string} name of an alert
 * @returns {string} address of its runbook
 */
const runbookOf = name => `${RUNBOOKS}/${name}.md`

module.exports = { runbookOf }
