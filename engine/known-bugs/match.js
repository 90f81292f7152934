'use strict'

/** @typedef {import('./define-known-bug').KnownBug} KnownBug */

/**
 * Known versions of a process or a project.
 * @typedef {object} Versions
 * @property {string} node without a leading v
 * @property {ReadonlyMap<string, readonly string[]>} packages versions by package name: a package
 *   may be installed in several versions
 *
 * @typedef {object} KnownBugMatch
 * @property {KnownBug} bug
 * @property {string} version that has the bug
 *
 * A known bug attached to a verdict, as the API and `memwatch run --json` return it.
 * @typedef {object} KnownBugNote
 * @property {string} id
 * @property {string} package `node`, or the name of a package
 * @property {string} version that has the bug
 * @property {string | null} fixedIn first newer version without the bug; null if there is none
 * @property {string | null} workaround
 * @property {string} thread address of the public thread
 * @property {boolean} likely true if a suspect of the verdict passes through the code of the bug
 * @property {string} text one line, without the workaround
 */

/** Upper bound of the known bugs attached to one verdict. */
const MOST_NOTES = 8
/** Longer texts are not versions, although semver allows 256 characters. */
const MOST_VERSION_LENGTH = 64
const OPTIONS = { includePrerelease: true }

/**
 * Tests whether a version is in a range. The semver library and the table of bugs are loaded when
 * first needed, because most exporters never have a finding.
 * @param {string} version
 * @param {string} range
 * @returns {boolean} false if the text is not a version
 */
function isIn (version, range) {
  if (version.length > MOST_VERSION_LENGTH) return false
  return require('semver/functions/satisfies')(version, range, OPTIONS)
}

/**
 * Known bugs of the versions of a process or project, in the order of the table: one entry for each
 * version that has the bug.
 * @param {Versions} versions
 * @returns {KnownBugMatch[]}
 */
function findKnownBugs ({ node, packages }) {
  return require('./index').knownBugs.flatMap(bug => {
    const installed = bug.package === 'node' ? [node] : packages.get(bug.package) ?? []
    return [...new Set(installed)]
      .filter(version => isIn(version, bug.affected))
      .map(version => ({ bug, version }))
  })
}

/**
 * Selects the known bugs that may cause a verdict. If a suspect passes through the code of some
 * bugs, only the bugs with the most such places are selected, as likely causes. A trap needs a
 * certain use of its package. If the verdict has suspects, a bug is left out unless one of them
 * passes through its code.
 * @param {string} diagnosis
 * @param {readonly KnownBugMatch[]} matches
 * @param {Pick<import('../text/suspect-text').Suspects, 'sites'> | null} suspects of the verdict
 * @returns {KnownBugNote[]}
 */
function noteKnownBugs (diagnosis, matches, suspects) {
  const sites = (suspects?.sites ?? []).map(({ through = [] }) => new Set(through))
  const notes = matches
    .filter(({ bug }, i) => bug.diagnoses.includes(diagnosis) &&
      matches.findIndex(other => other.bug === bug) === i)
    .map(match => ({ match, places: countPlaces(match.bug, sites) }))
  const most = Math.max(0, ...notes.map(({ places }) => places))
  const told = most > 0
    ? notes.filter(({ places }) => places === most)
    : notes.filter(({ match: { bug } }) => !needsSuspect(bug, suspects))
  return told.slice(0, MOST_NOTES).map(({ match }) => noteOf(match, most > 0))
}

/**
 * @param {KnownBug} bug
 * @param {readonly Set<string>[]} sites places that each suspect passes through
 * @returns {number} number of places in the largest group that a site passes through completely; 0
 *   if there is none
 */
const countPlaces = ({ suspects }, sites) => Math.max(0, ...suspects
  .filter(group => sites.some(places => group.every(place => places.has(place))))
  .map(group => group.length))

/**
 * True for a bug that needs a suspect to be selected. Every process contains all of Node.js, so its
 * traps always need one. If the suspects pass through modules or packages, all bugs need one that
 * passes through their code: suspects elsewhere speak against them.
 * @param {KnownBug} bug
 * @param {Pick<import('../text/suspect-text').Suspects, 'sites'> | null} suspects
 */
function needsSuspect ({ kind, package: name, suspects: places }, suspects) {
  const sites = suspects?.sites ?? []
  const isTold = places.length > 0 && sites.some(({ through = [] }) => through.length > 0)
  return isTold || (kind === 'trap' && (name === 'node' || sites.length > 0))
}

/**
 * @param {KnownBugMatch} match
 * @param {boolean} likely
 * @returns {KnownBugNote}
 */
function noteOf ({ bug, version }, likely) {
  const { id, package: name, workaround, thread } = bug
  const fixedIn = fixedAfter(bug, version)
  const text = textOf(bug, version, likely)
  return { id, package: name, version, fixedIn, workaround, thread, likely, text }
}

/**
 * @param {KnownBug} bug
 * @param {string} version that has the bug
 * @returns {string | null} the first newer version without the bug
 */
const fixedAfter = ({ fixed }, version) => {
  const compare = require('semver/functions/compare')
  return [...fixed].sort(compare).find(one => compare(one, version) > 0) ?? null
}

/**
 * @param {string} name
 * @param {string} version
 */
const versionText = (name, version) => `${name === 'node' ? 'Node.js' : name} ${version}`

/**
 * @param {KnownBug} bug
 * @param {string} version
 * @param {boolean} likely
 * @returns {string}
 */
function textOf (bug, version, likely) {
  const { kind, package: name, title, when } = bug
  const known = likely ? 'Known' : `Also known for ${versionText(name, version)}`
  // Any use of a package leads a suspect to its code, not only the use that is a trap.
  const found = kind === 'trap'
    ? `A suspect leads there: this is the cause if ${when}`
    : 'This is likely the cause: a suspect leads there'
  const cause = likely ? found : `It applies when ${when}`
  return `${known}: ${title} (${threadName(bug.thread)}), ${fixText(bug, version)}. ${cause}.`
}

/**
 * @param {KnownBug} bug
 * @param {string} version
 */
function fixText (bug, version) {
  const fixedIn = fixedAfter(bug, version)
  if (fixedIn !== null) return `fixed in ${versionText(bug.package, fixedIn)}`
  return bug.kind === 'trap' ? 'by design' : 'not fixed'
}

/**
 * @param {string} thread address of a thread on GitHub
 * @returns {string} short name, such as nodejs/node#63574
 */
const threadName = thread =>
  /github\.com\/([^/]+\/[^/]+)\/(?:issues|pull|discussions)\/(\d+)/.exec(thread)?.slice(1).join('#') ??
  thread.replace('https://', '')

module.exports = { findKnownBugs, noteKnownBugs, isIn, fixedAfter, threadName, versionText }
