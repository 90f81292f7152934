'use strict'

const { nameOwner } = require('../text/code-owner')
const { formatBytes, formatKibibytes } = require('../text/format')

/** @typedef {import('./findings').Finding} Finding */

const MIB = 2 ** 20

/** @param {number} bytes */
const size = bytes => (bytes < MIB ? formatKibibytes(bytes) : formatBytes(bytes))

/** @param {number} count */
const number = count => count.toLocaleString('en-US')

/**
 * @param {import('./names').Place | null} place
 * @param {string} [folder] folder of the app, removed from file names
 * @returns {string} such as src/cache.js:7; a package's file starts at node_modules
 */
function placeText (place, folder = '') {
  if (!place) return ''
  let file = place.file.replace(/^file:\/\//, '')
  const ofPackage = Math.max(file.lastIndexOf('/node_modules/'), file.lastIndexOf('\\node_modules\\'))
  if (ofPackage >= 0) file = file.slice(ofPackage + 1)
  else if (folder !== '' && file.startsWith(`${folder}/`)) file = file.slice(folder.length + 1)
  return place.line === null ? file : `${file}:${place.line}`
}

/**
 * @param {Finding} finding
 * @param {{ folder?: string }} [options] folder: folder of the app, removed from file names
 * @returns {string} such as: 2,411 Session objects, 41 MiB, held by Map `sessions` in
 *   src/cache.js:7, …
 */
function sentenceOf (finding, { folder } = {}) {
  const { count, retainedBytes, holder, also, root, keeps, pins, places } = finding
  const what = `${number(count)} ${plural(finding.className, count)}, ${size(retainedBytes)}`
  const and = also ? ` and by ${holderText({ ...also, heldPlace: null }, folder)}` : ''
  const times = places > 1 ? `${number(places)} × ` : ''
  return `${what}${pins ? pinnedText(pins) : keptText(keeps)}, held by ${times}${holderText(holder, folder)}${and}; kept alive by ${root.text}`
}

/** @param {Finding['keeps']} keeps */
function keptText (keeps) {
  if (!keeps) return ''
  const { className, retainedBytes, isStore } = keeps
  const bytes = retainedBytes < 1024 ? '' : `, ${size(retainedBytes)}`
  return ` (each keeps ${className}${bytes}${isStore ? ', as the store of an AsyncLocalStorage' : ''})`
}

/**
 * A snapshot does not contain the length of a Buffer. The views are certainly slices only if there
 * are more views than ArrayBuffers.
 * @param {NonNullable<Finding['pins']>} pins
 */
function pinnedText ({ viewName, views, stores, storeBytes }) {
  const of = `${number(stores)} ${stores === 1 ? 'ArrayBuffer' : 'ArrayBuffers'} of ${size(storeBytes)}`
  return views > stores
    ? ` (${number(views)} ${viewName} slices keep ${of})`
    : ` (they keep ${of}: a slice keeps all of its ArrayBuffer)`
}

/**
 * @param {Finding['holder']} holder
 * @param {string} [folder]
 */
function holderText ({ kind, name, nameKind, owner, place, heldPlace }, folder) {
  const named = name === null ? kind : `${kind} \`${name}\``
  const of =
    nameKind === 'property' && owner && owner !== 'Object' && owner !== 'array' ? ` of ${owner}` : ''
  const at = placeText(place, folder)
  const held = heldPlace ? `, with code of ${placeText(heldPlace, folder)}` : ''
  return `${named}${of}${at === '' ? '' : ` in ${at}`}${held}`
}

/**
 * @param {string} className
 * @param {number} count
 */
function plural (className, count) {
  if (count === 1) return className === 'string' ? 'string' : `${className} object`
  if (className === 'string') return 'strings'
  if (className === 'Object') return 'objects'
  if (className.startsWith('function')) return className.replace('function', 'functions')
  return className.startsWith('Object {') ? `objects ${className.slice(7)}` : `${className} objects`
}

/**
 * @param {Finding} finding
 * @param {{ folder?: string }} [options] folder: folder of the app, removed from file names
 * @returns {string[]} a line for each step from the root, such as: variable sessions → Map
 */
const pathLines = ({ path }, { folder } = {}) =>
  path.map(({ edge, name, className, place }) => {
    const at = placeText(place, folder)
    return `${stepText(edge, name)} → ${className}${at === '' ? '' : ` (${at})`}`
  })

/**
 * @param {string} edge
 * @param {string | number} name
 */
function stepText (edge, name) {
  if (edge === 'context') return `variable ${name}`
  if (edge === 'property') return `.${name}`
  return edge === 'element' ? `[${name}]` : `(${edge} ${name})`
}

/**
 * Retained bytes by the package whose code holds them.
 * @param {readonly Finding[]} findings
 * @param {string | ((file: string) => string)} app name of the app, used for its own code
 * @returns {import('../text/suspect-text').PackageShare[]} packages, largest first; shares are
 *   relative to all findings
 */
function sumByPackage (findings, app) {
  /** @type {Map<string, number>} */
  const sums = new Map()
  let total = 0
  for (const { code, retainedBytes } of findings) {
    const file = code?.file ?? 'node:'
    const name = nameOwner(file, typeof app === 'string' ? app : app(file))
    sums.set(name, (sums.get(name) ?? 0) + retainedBytes)
    total += retainedBytes
  }
  return [...sums]
    .sort(([, a], [, b]) => b - a)
    .map(([name, value]) => ({ package: name, value, share: value / total }))
}

module.exports = { sentenceOf, sumByPackage, pathLines, placeText, size }
