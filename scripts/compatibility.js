'use strict'

/** The tables of docs/compatibility.md that `npm run test:platforms -- --write` fills. */

const fs = require('node:fs')
const path = require('node:path')
const { SOURCES } = require('../test/platforms/sources')

const ROOT = path.join(__dirname, '..')
/** Results of whole runs, by platform, in the order of the tables. */
const SEEN = path.join(ROOT, 'test/platforms/seen.json')
const BEGIN = '<!-- platforms: npm run test:platforms -- --write -->\n'
const END = '<!-- end of platforms -->\n'

/**
 * Results of one platform.
 * @typedef {object} Seen
 * @property {string} title
 * @property {string[]} nodes versions of Node.js
 * @property {string[]} known names of SOURCES with values on all of them
 * @property {{ title: string, nodes: string[] }[]} verified claims that hold
 */

/** @returns {Record<string, Seen>} results by platform; empty before the first run */
const readSeen = () => fs.existsSync(SEEN) ? JSON.parse(fs.readFileSync(SEEN, 'utf8')) : {}

/**
 * @param {string[]} names all platforms, in the order of the tables
 * @param {string} name version of Node.js that was tested
 * @param {Seen} result
 */
function writeSeen (names, name, result) {
  const seen = { ...readSeen(), [name]: result }
  const sorted = Object.fromEntries(names.filter(one => seen[one]).map(one => [one, seen[one]]))
  fs.writeFileSync(SEEN, `${JSON.stringify(sorted, null, 2)}\n`)
}

/** @param {string[]} cells */
const row = cells => `| ${cells.join(' | ')} |`

/** @param {Seen[]} platforms */
function drawTables (platforms) {
  const majors = (/** @type {string[]} */ nodes) =>
    nodes.map(version => version.split('.')[0]).join(', ')
  return [
    row(['values of a process', ...platforms.map(({ title }) => title)]),
    row(['---', ...platforms.map(() => '---')]),
    ...Object.keys(SOURCES).map(source =>
      row([source, ...platforms.map(({ known }) => known.includes(source) ? 'yes' : '–')])),
    '',
    row(['platform', 'tested', 'Node.js']),
    row(['---', '---', '---']),
    ...platforms.flatMap(({ title, verified }) =>
      verified.map(one => row([title, one.title, majors(one.nodes)]))),
    '',
    `Versions: ${platforms.map(({ title, nodes }) => `${title}: ${nodes.join(', ')}`).join('; ')}.`
  ].join('\n')
}

/** @returns {string} docs/compatibility.md with the tables of the last runs */
function compatibility () {
  const page = fs.readFileSync(path.join(ROOT, 'docs/compatibility.md'), 'utf8')
  const [before, rest] = page.split(BEGIN)
  const tables = drawTables(Object.values(readSeen()))
  return `${before}${BEGIN}\n${tables}\n\n${END}${rest.split(END)[1]}`
}

module.exports = { compatibility, writeSeen }
