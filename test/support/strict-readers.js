'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFileSync } = require('node:child_process')
const { parseAllDocuments } = require('yaml')

/**
 * Finds characters that must not occur in text: control and format characters, separators and lone
 * surrogates. Newlines are allowed.
 * @param {string} text
 */
const unprintableIn = text =>
  [...new Set(text.match(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu) ?? [])]
    .filter(character => character !== '\n')
    .map(character => JSON.stringify(character))

/**
 * @param {string} text
 * @returns {any} the only document; YAML 1.1 and 1.2 must read the same
 */
function yamlDocument (text) {
  const [document, again] = ['1.2', '1.1'].map(version => {
    const documents = parseAllDocuments(text, { version: /** @type {'1.1'} */ (version) })
    if (documents.length !== 1) throw new Error(`${documents.length} documents in ${text}`)
    const [{ errors, warnings }] = documents
    if (errors.length + warnings.length > 0) {
      throw new Error(`${[...errors, ...warnings].join()} in ${text}`)
    }
    return documents[0].toJS()
  })
  if (JSON.stringify(document) !== JSON.stringify(again)) {
    throw new Error(`read otherwise by YAML 1.1: ${text}`)
  }
  return document
}

/**
 * Words into which a POSIX shell splits lines, each pasted after a command.
 * @param {string[]} lines
 * @returns {{ words: string[][], files: string[] }} files: files that the lines created, which is a
 *   defect
 */
function shellReads (lines) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-shell-'))
  try {
    const script = lines.map(line => `printf '%s\\0' ${line}\nprintf '\\1\\0'\n`).join('')
    execFileSync('/bin/sh', ['-n'], { input: script, cwd: folder })
    const said = execFileSync('/bin/sh', [], {
      input: script,
      cwd: folder,
      encoding: 'utf8',
      env: { PATH: process.env.PATH }
    })
    return {
      words: said
        .split('\u0001\0')
        .slice(0, -1)
        .map(words => words.split('\0').slice(0, -1)),
      files: fs.readdirSync(folder)
    }
  } finally {
    fs.rmSync(folder, { recursive: true })
  }
}

/**
 * @param {string} text of a Dockerfile
 * @returns {Record<string, string>} its variables
 */
function dockerfileVariables (text) {
  return Object.fromEntries(
    text.split('\n').flatMap(line => {
      if (
        line === '' ||
        /^# /.test(line) ||
        /^(RUN apt-get [\w ./&*-]+|FROM [\w./:-]+)$/.test(line)
      ) { return [] }
      const [, name, value] = /^ENV ([A-Z_]+)="((?:[^"\\$]|\\["\\$])*)"$/.exec(line) ?? []
      if (name === undefined) {
        throw new Error(`no line of a Dockerfile that memwatch writes: ${JSON.stringify(line)}`)
      }
      return [[name, value.replace(/\\(["\\$])/g, '$1')]]
    })
  )
}

const SAMPLE =
  /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\n"])*",?)*)\})? (NaN|[+-]Inf|[+-]?[0-9.]+(?:e[+-]?\d+)?)$/
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"/g

/**
 * Parses Prometheus' text format, or OpenMetrics', strictly.
 * https://prometheus.io/docs/instrumenting/exposition_formats/
 * @param {Buffer} bytes
 * @returns {{ series: string, name: string, labels: Record<string, string>, value: number }[]}
 * @throws {Error} for a line that is no sample
 */
function exposition (bytes) {
  const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  return text.split('\n').flatMap(line => {
    if (
      line === '' ||
      /^# (HELP|TYPE) [a-zA-Z_:][a-zA-Z0-9_:]* .+$/.test(line) ||
      line === '# EOF'
    ) {
      return []
    }
    const [, name, labels = '', value] = SAMPLE.exec(line) ?? []
    if (name === undefined) throw new Error(`no sample: ${JSON.stringify(line)}`)
    const read = [...labels.matchAll(LABEL)].map(([, label, written]) => [
      label,
      written.replace(/\\(.)/g, (_, character) => (character === 'n' ? '\n' : character))
    ])
    return [
      { series: `${name}{${labels}}`, name, labels: Object.fromEntries(read), value: Number(value) }
    ]
  })
}

/**
 * Rows of the table of a Markdown text, as GitHub splits them: at each | without a backslash before
 * it.
 * @param {string} text
 * @returns {string[][]}
 * @throws {Error} for HTML that memwatch does not write, and code spans that do not end
 */
function markdownTable (text) {
  const html = text.replace(/<\/?code>/g, '').match(/<[^>]*>?/)
  if (html) throw new Error(`HTML: ${html[0]}`)
  return text
    .split('\n')
    .filter(line => line.startsWith('|'))
    .map(line => {
      const cells = line
        .split(/(?<!\\)\|/)
        .slice(1, -1)
        .map(cell => cell.trim())
      for (const cell of cells) {
        if ((cell.match(/`/g) ?? []).length % 2 === 1) {
          throw new Error(`a code span without an end: ${cell}`)
        }
      }
      return cells
    })
}

module.exports = {
  unprintableIn,
  yamlDocument,
  shellReads,
  dockerfileVariables,
  exposition,
  markdownTable
}
