'use strict'

/**
 * @param {string[]} head
 * @param {(string | number)[][]} rows
 * @returns {string} a table in Markdown
 */
const table = (head, rows) => [head, head.map(() => '---'), ...rows]
  .map(row => `| ${row.map(cell => String(cell).replaceAll('|', '\\|')).join(' | ')} |`).join('\n')

module.exports = { table }
