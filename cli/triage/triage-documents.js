'use strict'

const { markdownText } = require('@memwatch/engine/text/markdown')
const { printable } = require('@memwatch/engine/text/printable')
const { escapeMarkup } = require('../text/escape')

/** @typedef {import('../text/terminal').Line} Line */
/** @typedef {{ title: string, lines: readonly Line[] }} Section */

/** Colours of the styles in a report. */
const COLOURS = Object.freeze(/** @type {Record<string, string>} */ ({
  red: '#b00020', yellow: '#8a6100', green: '#1b6e2a', cyan: '#00697a', bold: 'inherit'
}))

/** @param {Line} line */
const textOf = line => printable(typeof line === 'string' ? line : line.text)

/**
 * @param {string} title untrusted text
 * @param {readonly Section[]} sections sections, whose lines are untrusted text
 * @returns {string} Markdown; untrusted lines are indented code, which no text can end
 */
const toMarkdown = (title, sections) =>
  [
    `# ${markdownText(title)}`,
    ...sections.flatMap(({ title, lines }) =>
      ['', `## ${markdownText(title)}`, '', ...lines.map(line => `    ${textOf(line)}`.trimEnd())])
  ].join('\n') + '\n'

/** @param {Line} line */
function htmlLine (line) {
  const text = escapeMarkup(textOf(line))
  if (typeof line === 'string') return text
  const colour = COLOURS[String(line.style)] ?? 'inherit'
  return `<b style="color:${colour}">${text}</b>`
}

/**
 * Creates one HTML page that loads nothing and runs no code.
 * @param {string} title untrusted text
 * @param {readonly Section[]} sections lines are untrusted text
 */
const toHtml = (title, sections) => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${escapeMarkup(printable(title))}</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
pre { background: #f5f5f3; color: #222; padding: 1rem; overflow-x: auto; font-size: 13px }
</style>
<h1>${escapeMarkup(printable(title))}</h1>
${sections.map(({ title, lines }) =>
  `<h2>${escapeMarkup(printable(title))}</h2>\n<pre>${lines.map(htmlLine).join('\n')}</pre>`).join('\n')}
</html>
`

module.exports = { toMarkdown, toHtml }
