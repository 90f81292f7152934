'use strict'

/**
 * Draws the diagram of ARCHITECTURE.md: the folders of each package, and an arrow from each folder
 * to the folders whose values it imports. It is Mermaid text, generated from the real imports.
 */

const fs = require('node:fs')
const path = require('node:path')
const { options } = require('../.dependency-cruiser.js')

const ROOT = path.join(__dirname, '..')
const BEGIN = '<!-- imports: npm run generate -->\n'
const END = '<!-- end of imports -->\n'

/** Packages from the top of the picture to its bottom. */
const PACKAGES = ['cli', 'exporter', 'engine', 'agent']

/** @typedef {Map<string, Set<string>>} Graph imported nodes by node */

/**
 * Imports between the files of the packages.
 * @returns {Promise<Graph>}
 */
async function readImports () {
  // The module is loaded on use, because it is an ECMAScript module and takes a second to load.
  const { cruise } = await import('dependency-cruiser')
  const { output } = await cruise(PACKAGES, {
    ...options,
    baseDir: ROOT,
    // A folder of a package may contain node_modules.
    includeOnly: { path: `^(${PACKAGES.join('|')})/(?!node_modules/).*\\.js$` }
  }, options?.enhancedResolveOptions)
  const { modules } = /** @type {import('dependency-cruiser').ICruiseResult} */ (output)
  return new Map(modules.map(({ source, dependencies }) =>
    [source, new Set(dependencies.map(({ resolved }) => resolved))]))
}

/**
 * @param {Graph} graph
 * @param {string} from
 * @returns {Set<string>} all nodes that it imports directly or through others
 */
function findReachable (graph, from) {
  const reached = new Set()
  const open = [from]
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    for (const next of graph.get(node) ?? []) {
      if (!reached.has(next)) open.push(next)
      reached.add(next)
    }
  }
  return reached
}

/**
 * Assigns files to nodes of the diagram. The node of a file is its folder. A file outside of
 * folders is a node of its own if it imports from a folder; other such files are drawn as one node.
 * The commands of the command line are one node, with the folders that have the name of a command.
 * @param {Graph} files
 * @returns {(file: string) => string}
 */
function assignRooms (files) {
  const rooms = new Map([...files.keys()].map(file => {
    const [top, folder, inFolder] = file.split('/')
    const isCommand = top === 'cli' && (inFolder === undefined || files.has(`cli/${folder}.js`))
    if (isCommand) return [file, 'cli/commands']
    if (inFolder !== undefined) return [file, `${top}/${folder}`]
    const entersFolder = [...findReachable(files, file)]
      .some(other => other.split('/').length > 2 && other.startsWith(`${top}/`))
    return [file, entersFolder ? file : `${top}/shared files`]
  }))
  return file => /** @type {string} */ (rooms.get(file))
}

/**
 * @param {Graph} files
 * @returns {Graph} graph of nodes
 */
function joinRooms (files) {
  const roomOf = assignRooms(files)
  /** @type {Graph} */
  const rooms = new Map([...files.keys()].map(roomOf).sort().map(room => [room, new Set()]))
  for (const [file, imports] of files) {
    for (const imported of imports) {
      if (roomOf(imported) !== roomOf(file)) rooms.get(roomOf(file))?.add(roomOf(imported))
    }
  }
  return rooms
}

/**
 * Removes each arrow that is implied by others: a → c if there is a → b → c.
 * @param {Graph} graph
 * @returns {Graph}
 * @throws {Error} if nodes import each other in a circle, whose arrows imply each other
 */
function reduceArrows (graph) {
  return new Map([...graph].map(([room, imports]) => {
    if (findReachable(graph, room).has(room)) {
      throw new Error(`${room} imports itself through others`)
    }
    const implied = new Set([...imports].flatMap(next => [...findReachable(graph, next)]))
    return [room, new Set([...imports].filter(next => !implied.has(next)))]
  }))
}

/**
 * @param {Graph} graph
 * @returns {string} Mermaid
 */
function draw (graph) {
  const ids = new Map([...graph.keys()].map(room =>
    [room, room.replace(/[^a-z0-9]+/g, '_')]))
  const nodes = (/** @type {string} */ top) => [...ids]
    .filter(([room]) => room.startsWith(`${top}/`))
    .map(([room, id]) => `    ${id}["${room.slice(top.length + 1)}"]`)
  const arrows = [...graph].filter(([, imports]) => imports.size > 0).map(([room, imports]) =>
    `  ${ids.get(room)}-->${[...imports].sort().map(next => ids.get(next)).join(' & ')}`)
  return [
    'flowchart TD',
    ...PACKAGES.flatMap(name => [`  subgraph ${name}`, ...nodes(name), '  end']),
    ...arrows
  ].join('\n')
}

/**
 * ARCHITECTURE.md with the diagram of the present imports.
 * @returns {Promise<string>}
 */
async function architecture () {
  const page = fs.readFileSync(path.join(ROOT, 'ARCHITECTURE.md'), 'utf8')
  const [before, rest] = page.split(BEGIN)
  const picture = draw(reduceArrows(joinRooms(await readImports())))
  return `${before}${BEGIN}\n\`\`\`mermaid\n${picture}\n\`\`\`\n\n${END}${rest.split(END)[1]}`
}

module.exports = { architecture, joinRooms, reduceArrows }
