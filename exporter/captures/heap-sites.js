'use strict'

const {
  addAmount, callerOf, isOfAgent, mainName, nameOf, originOf, ownerOf, pathOf
} = require('./call-frames')
const { originOf: originOfFile, packageOf } = require('@memwatch/engine/text/code-owner')

/**
 * A sampling heap profile of the DevTools protocol: bytes that were allocated while it ran and are
 * still alive, scaled up from the samples.
 * @typedef
 *   {{ callFrame: import('./call-frames').CallFrame, selfSize: number, children: HeapNode[],
 *   id?: number }} HeapNode
 * @typedef {{ head: HeapNode, samples?: { nodeId: number }[] }} HeapProfile
 *
 * @typedef {object} HeapSite a place in the code that allocates memory
 * @property {string} function
 * @property {string} file
 * @property {number} line from 1, where the function begins
 * @property {number} column from 1
 * @property {number} bytes growth of its live bytes
 * @property {number} share of all growth
 * @property {number} samples number of samples behind it
 * @property {string | null} via package that the site calls, and that allocates for it
 * @property {string | null} within for a function without a name: a named caller in its file
 * @property {string | null} innermost package nearest to the allocation of most of its bytes
 * @property {string[]} through builtin modules, packages and functions of V8 between the site and
 *   the allocation, including the site's own package; most bytes first
 */

/** Upper bound of the places of one site. */
const MOST_PLACES = 8
/**
 * Least share of a site's bytes that pass through a place: an app that also calls Promise.race()
 * does not leak by it.
 */
const PLACE_SHARE = 0.1

/** @param {HeapNode} node */
const isOfNode = ({ callFrame }) => originOf(callFrame) === 'node'

/**
 * @param {import('./call-frames').CallFrame} frame
 * @returns {string} builtin module, package or function of V8; empty for the app's own
 */
function placeOf (frame) {
  switch (originOf(frame)) {
    case 'app': return ''
    case 'dependency': return packageOf(frame.url) ?? ''
    case 'node': return frame.url
    case 'native': return frame.functionName.startsWith('(') ? '' : frame.functionName
  }
}

/**
 * @typedef {Omit<HeapSite, 'share' | 'through' | 'within' | 'innermost'> &
 *   Record<'places' | 'callers' | 'packages', Map<string, number>>} SiteBytes bytes by place, by
 *   caller of a function without a name, and by innermost package
 */

/**
 * @param {Pick<SiteBytes, 'places' | 'bytes'>} site
 * @returns {string[]} its places, most bytes first, without those of few bytes
 */
const mainPlaces = ({ places, bytes }) => [...places]
  .filter(([, through]) => through >= PLACE_SHARE * bytes)
  .sort(([, a], [, b]) => b - a)
  .slice(0, MOST_PLACES)
  .map(([place]) => place)

/**
 * @param {HeapProfile} profile
 * @param {string | undefined} agentFolder
 * @returns {Map<string, SiteBytes>} live bytes by site, without those of the agent. The site is the
 *   innermost function of the app that caused the allocation; without one, the innermost function
 *   of a dependency, or else of Node.js
 */
function bytesBySite ({ head, samples = [] }, agentFolder) {
  /** @type {Map<number | undefined, number>} */
  const samplesOf = new Map()
  for (const { nodeId } of samples) samplesOf.set(nodeId, (samplesOf.get(nodeId) ?? 0) + 1)
  /** @type {Map<string, SiteBytes>} */
  const sites = new Map()
  /** @type {{ node: HeapNode, stack: HeapNode[] }[]} */
  const open = [{ node: head, stack: [head] }]
  for (let next = open.pop(); next; next = open.pop()) {
    const { node, stack } = next
    for (const child of node.children) open.push({ node: child, stack: [child, ...stack] })
    if (node.selfSize === 0 || isOfAgent(stack, agentFolder)) continue
    const { owner, callees } = ownerOf(stack)
    // Text that Node.js decodes from a socket is not allocated by a call of the app.
    const { callFrame } = owner ?? stack.find(isOfNode) ?? {
      callFrame: { functionName: '(outside JavaScript)', url: '', lineNumber: -1, columnNumber: -1 }
    }
    const dependency = callees.find(({ callFrame }) => originOf(callFrame) === 'dependency')
    const via = dependency ? packageOf(dependency.callFrame.url) : null
    const key = JSON.stringify([
      callFrame.url,
      callFrame.lineNumber,
      callFrame.columnNumber,
      callFrame.functionName,
      via
    ])
    const site = sites.get(key) ?? {
      function: nameOf(callFrame),
      file: pathOf(callFrame.url),
      line: callFrame.lineNumber + 1,
      column: callFrame.columnNumber + 1,
      bytes: 0,
      samples: 0,
      via,
      places: new Map(),
      callers: new Map(),
      packages: new Map()
    }
    sites.set(key, site)
    site.bytes += node.selfSize
    site.samples += samplesOf.get(node.id) ?? 0
    const places = new Set([callFrame, ...callees.map(({ callFrame }) => callFrame)].map(placeOf))
    places.delete('')
    for (const place of places) addAmount(site.places, place, node.selfSize)
    addAmount(site.callers, callerOf(stack, callFrame), node.selfSize)
    const nearest = callees.findLast(({ callFrame }) => originOf(callFrame) === 'dependency')
    const innermost = nearest ? packageOf(nearest.callFrame.url) : null
    if (innermost !== null) addAmount(site.packages, innermost, node.selfSize)
  }
  return sites
}

/**
 * Growth between two readings of one profile. Memory that is alive at both readings without growth
 * belongs to unfinished requests. Without an earlier reading, all live memory counts as growth.
 * @param {HeapProfile | undefined} before
 * @param {HeapProfile} after
 * @param {string} [agentFolder]
 * @returns {{ totalBytes: number, sites: HeapSite[] }} sites, most growth first; totalBytes: growth
 *   of all sites
 */
function heapSites (before, after, agentFolder) {
  const earlier = before ? bytesBySite(before, agentFolder) : new Map()
  const grown = [...bytesBySite(after, agentFolder)]
    .map(([key, { places, callers, packages, ...site }]) => ({
      ...site,
      through: mainPlaces({ places, bytes: site.bytes }),
      within: mainName(callers),
      innermost: mainName(packages),
      bytes: Math.round(site.bytes - (earlier.get(key)?.bytes ?? 0)),
      samples: site.samples - (earlier.get(key)?.samples ?? 0)
    }))
    .filter(({ bytes }) => bytes > 0)
  const totalBytes = grown.reduce((sum, { bytes }) => sum + bytes, 0)
  const sites = grown
    .filter(({ file }) => file !== '')
    .map(site => ({ ...site, share: site.bytes / totalBytes }))
    .sort((a, b) => b.bytes - a.bytes)
  return { totalBytes, sites }
}

/**
 * Least number of samples of a suspect: fewer may belong to a cache of Node.js, or to unfinished
 * requests.
 */
const LEAST_SAMPLES = 4
/** A site is named if it has at least this share of the growth. */
const OWNER_SHARE = 0.1
/**
 * The same for a site in Node.js itself, without a call of the app: timers and sockets of any app
 * have a smaller share.
 */
const NODE_OWNER_SHARE = 0.5

/**
 * Finds sites whose objects may own the memory or handles that grow outside the heap. The heap
 * itself grows little in such a leak, so even a few ordinary objects are a large share of its
 * growth.
 * @param {HeapSite[]} sites sites, most growth first
 * @returns {HeapSite[]}
 */
function findOwners (sites) {
  const owners = sites.filter(({ samples, share }) =>
    samples >= LEAST_SAMPLES && share >= OWNER_SHARE)
  const ofApp = owners.filter(({ file }) => !file.startsWith('node:'))
  return ofApp.length > 0 ? ofApp : owners.filter(({ share }) => share >= NODE_OWNER_SHARE)
}

/** Modules of Node.js that create objects with native memory of their own. */
const CREATES_NATIVE =
  /^node:(?:zlib|_?tls|sqlite|http2|worker_threads|internal\/(?:crypto\/(?:keys|x509)|worker))/

/**
 * Puts sites of objects that own memory outside the heap before sites of plain objects, which own
 * none, if a site of the former calls a module that creates them. In a full ring of plain objects
 * that turns over every 40 s, the objects of a profile of ten seconds all survive.
 * @param {HeapSite[]} sites sites, most growth first
 * @returns {HeapSite[]}
 */
function ownersFirst (sites) {
  const isAny = sites.some(({ through }) => through.some(place => CREATES_NATIVE.test(place)))
  const isPlain = (/** @type {HeapSite} */ { through }) =>
    !through.some(place => place.startsWith('node:') || place.endsWith('Array'))
  return isAny ? sites.toSorted((a, b) => Number(isPlain(a)) - Number(isPlain(b))) : sites
}

/** Objects of a site pile up at most this many times as fast as the heap grows: load varies. */
const MOST_GROWTH_RATIO = 3
/** The same if the heap does not grow: few samples estimate a size badly. */
const MOST_STANDING_BYTES = 256 * 1024

/**
 * Leaves out lines that allocated much more than the live heap grew: their objects replace older
 * ones, as in a full cache. A cache of which each entry was new after eight seconds had 98 % of
 * the growth of a profile, beside databases that were never closed.
 * @param {ReturnType<typeof heapSites>} grown
 * @param {{ heapGrowthBytes?: number, owns: boolean }} options heapGrowthBytes: growth of the live
 *   heap meanwhile, undefined if unknown; owns: true if memory outside the heap leaks. If the heap
 *   itself leaks, something must remain
 * @returns {ReturnType<typeof heapSites>}
 */
function withoutReplaced (grown, { heapGrowthBytes, owns }) {
  if (heapGrowthBytes === undefined) return grown
  const most = Math.max(MOST_GROWTH_RATIO * heapGrowthBytes, MOST_STANDING_BYTES)
  const lineOf = (/** @type {HeapSite} */ { file, line }) => `${file}:${line}`
  /** @type {Map<string, number>} */
  const byLine = new Map()
  for (const site of grown.sites) addAmount(byLine, lineOf(site), site.bytes)
  const isPiled = (/** @type {HeapSite} */ site) => Number(byLine.get(lineOf(site))) <= most
  const replaced = grown.sites.filter(site => !isPiled(site))
  const totalBytes = replaced.reduce((left, { bytes }) => left - bytes, grown.totalBytes)
  if (!owns && totalBytes < heapGrowthBytes / MOST_GROWTH_RATIO) return grown
  const sites = grown.sites.filter(isPiled)
    .map(site => ({ ...site, share: site.bytes / totalBytes }))
  return { totalBytes, sites }
}

/** Number of the app's own sites that may come before a package with more growth. */
const MOST_AHEAD = 2

/**
 * Sites of the app's own code that stand out come first, then those of packages, then all others.
 * The app usually retains objects that a package or Node.js allocates without a call of the app,
 * such as a parsed request.
 * @param {HeapSite[]} sites sites, most growth first
 * @returns {HeapSite[]}
 */
function appFirst (sites) {
  const leading = sites.filter(({ file, share }) =>
    originOfFile(file) !== 'node' && share >= OWNER_SHARE)
  const ofApp = leading.filter(({ file }) => originOfFile(file) === 'app').slice(0, MOST_AHEAD)
  return [...new Set([...ofApp, ...leading, ...sites])]
}

/**
 * @param {HeapSite[]} sites sites, most growth first
 * @returns {HeapSite | null} the site with the most growth outside Node.js; null if it is in the
 *   app's own code
 */
function leadingPackage (sites) {
  const first = sites.find(({ file }) => originOfFile(file) !== 'node')
  return first && originOfFile(first.file) === 'dependency' ? first : null
}

module.exports = { appFirst, heapSites, findOwners, leadingPackage, ownersFirst, withoutReplaced }
