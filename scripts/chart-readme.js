'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { isMap, parseDocument } = require('yaml')

const CHART = path.join(__dirname, '../deploy/helm/memwatch')
const BEGIN = '<!-- values: npm run generate -->\n'
const END = '<!-- end of values -->'
/** Maps shown as one value. */
const WHOLE = /^(resources|matchLabels|rollingUpdate)$/

/**
 * @param {string | null | undefined} comment comment in values.yaml
 * @returns {string} its last paragraph on one line, without examples, which are indented
 */
const toText = comment =>
  (comment ?? '')
    .replace(/^[^]*\n\s*\n/, '')
    .split('\n')
    .filter(line => !/^\s{2,}/.test(line))
    .map(line => line.trim())
    .join(' ')
    .trim()

/**
 * @param {import('yaml').YAMLMap<any, any>} map
 * @param {string} [at] path of the map, with a dot at its end
 * @returns {[name: string, value: string, text: string][]} rows for the values in the map and below
 */
function readRows (map, at = '') {
  return map.items.flatMap(({ key, value }, i) => {
    // The comment above the first key belongs to the map.
    const text = toText(key.commentBefore ?? (i === 0 ? map.commentBefore : ''))
    const name = at + key.value
    if (isMap(value) && value.items.length > 0 && !WHOLE.test(key.value)) {
      /** @type {[string, string, string][]} */
      const own = text === '' ? [] : [[name, '', text]]
      return [...own, ...readRows(value, `${name}.`)]
    }
    return [[name, JSON.stringify(value.toJSON()), text]]
  })
}

/**
 * @param {string} yaml text of a values.yaml
 * @returns {string} its table in Markdown
 */
function valuesTable (yaml) {
  const escape = (/** @type {string} */ text) => text.replaceAll('|', '\\|')
  const rows = readRows(/** @type {any} */ (parseDocument(yaml).contents))
  return [
    '| value | default | |',
    '|---|---|---|',
    ...rows.map(([name, value, text]) =>
      `| \`${name}\` | ${value && `\`${escape(value)}\``} | ${escape(text)} |`)
  ].join('\n')
}

/** @returns {string} README.md of the chart, with the table of its present values */
function chartReadme () {
  const page = fs.readFileSync(path.join(CHART, 'README.md'), 'utf8')
  const [before, rest] = page.split(BEGIN)
  const table = valuesTable(fs.readFileSync(path.join(CHART, 'values.yaml'), 'utf8'))
  return `${before}${BEGIN}\n${table}\n\n${END}${rest.split(END)[1]}`
}

module.exports = { chartReadme, valuesTable }
