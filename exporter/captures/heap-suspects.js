'use strict'

const { packageOf } = require('@memwatch/engine/text/code-owner')
const { formatRatio } = require('@memwatch/engine/text/format')
const { LEAST_SHARE, NAMED_SITES } = require('@memwatch/engine/text/suspect-text')
const {
  appFirst, findOwners, heapSites, leadingPackage, ownersFirst, withoutReplaced
} = require('./heap-sites')
const { InlinedCallees } = require('./inlined')
const { innerCalls } = require('./inner-calls')
const {
  MOST_NAME_LENGTH, MOST_SITES, listed, locate, placeOf, suspectAt, withinOf
} = require('./suspect-list')

/**
 * Least bytes of a function that comes before its caller, as a share of the caller's: a helper that
 * counts calls retains little beside a caller that retains much. Functions that V8 had inlined had
 * 0.29 and 0.6.
 */
const LEAST_KEEPER_RATIO = 0.2
/** The same for a function that a CPU profile shows inside the caller; one had 0.15. */
const LEAST_INNER_RATIO = 0.1

/** @typedef {import('@memwatch/engine/text/suspect-text').Suspects} Suspects */
/** @typedef {import('@memwatch/engine/text/suspect-text').Suspect} Suspect */
/** @typedef {import('@memwatch/agent/protocol/frame').Hello} Hello */
/** @typedef {import('./sources').Sources} Sources */
/** @typedef {import('./heap-sites').HeapSite} HeapSite */
/**
 * @typedef {{ before: import('./heap-sites').HeapProfile | undefined,
 *   after: import('./heap-sites').HeapProfile, heapGrowthBytes?: number }} HeapProfiles both
 *   readings of a heap profile; heapGrowthBytes: growth of the live heap meanwhile, if known
 */

/**
 * Suspects of a heap profile in which a package allocates most, with the functions of the app that
 * run inside this package first.
 * @param {import('./cpu-suspects').CpuProfile} profile
 * @param {HeapProfiles} heap
 * @param {boolean} owns
 * @param {Hello} hello
 * @param {Sources} sources
 * @returns {Suspects | null} null if no package leads, or if no function of the app runs there
 */
function innerSuspects (profile, heap, owns, hello, sources) {
  const { sites: all } = grownSites(heap, owns, hello)
  const outer = leadingPackage(owns ? findOwners(all) : all)
  if (!outer) return null
  const suspects = heapSuspects(heap, { of: 'grown bytes', owns }, hello, sources)
  const place = placeOf(locate(outer, sources, hello.name))
  const known = suspects.sites.find(site => placeOf(site) === place)
  if (!known) return null
  const { value, share, through } = known
  const inner = innerCalls(profile, outer, hello.agentFolder).map(site => {
    const found = suspectAt(site, value, sources, hello.name)
    const text = `${placeOf(found)} – perhaps: runs inside ${place}, for ` +
      `${formatRatio(site.share)} of the time of the app's functions there`
    return { ...found, share, through, inlinedIn: place, text }
  })
  if (inner.length === 0) return null
  const isOneOf = (/** @type {Suspect[]} */ list, /** @type {Suspect} */ site) =>
    list.some(other => placeOf(other) === placeOf(site))
  // A function whose own allocations V8 showed, before or beside inlining, comes first.
  const seen = suspects.sites
    .filter(site => site.inlinedIn === null && site.share >= LEAST_SHARE &&
      site.share >= LEAST_INNER_RATIO * share && isOneOf(inner, site))
    .map(site => ({ ...site, text: `${site.text}; ${sayInlined(place)}` }))
  // Callees found in a profile replace those that only the text of the function names.
  const others = suspects.sites.filter(site => site.inlinedIn !== place && !isOneOf(seen, site))
  const sites = [...seen, ...inner.filter(site => !isOneOf(seen, site)), ...others]
  return { ...suspects, sites: sites.slice(0, MOST_SITES) }
}

/** @param {string} place of the caller */
const sayInlined = place => `V8 may have inlined it into ${place}`

/**
 * @param {HeapProfiles} profiles
 * @param {boolean} owns
 * @param {Hello} hello
 */
const grownSites = ({ before, after, heapGrowthBytes }, owns, { agentFolder }) =>
  withoutReplaced(heapSites(before, after, agentFolder), { heapGrowthBytes, owns })

/**
 * Suspects of a heap profile, or of an allocation profile.
 * @param {HeapProfiles} profiles
 * @param {{ of: 'grown bytes' | 'allocated bytes', owns: boolean, isEarly?: boolean,
 *   isOver?: boolean }} options owns: true if objects on the heap own the growing memory outside
 *   it; isEarly: true to name only sites with enough samples; isOver: true if it no longer runs
 * @param {Hello} hello
 * @param {Sources} sources
 * @returns {Suspects}
 */
function heapSuspects (profiles, { of, owns, isEarly, isOver }, hello, sources) {
  const { totalBytes, sites: all } = grownSites(profiles, owns, hello)
  const candidates = owns || isEarly ? findOwners(all) : all
  const sites = appFirst(owns ? ownersFirst(candidates) : candidates)
  const callees = new InlinedCallees(file => sources.text(file))
  // For a heap profile one callee is named, the one that most likely retains the objects; in an
  // allocation profile all callees may have allocated.
  /** @returns {PossibleSite | PossibleSite[]} */
  const inlinedAt = (/** @type {HeapSite} */ site) => {
    const owner = locate(site, sources, hello.name).package
    // A bundle is one file with many packages, in which methods of any package have a called name.
    const mayBe = (/** @type {import('./inlined').Callee} */ { name, ...callee }) =>
      locate({ ...callee, function: name }, sources, hello.name).package === owner
    if (of === 'allocated bytes') return callees.allOf(site, mayBe).slice(0, NAMED_SITES)
    const callee = callees.of(site, mayBe)
    if (!callee) return []
    // Objects that own native memory may come from any call, also of one whose result is not used.
    return { ...callee, isLikelier: callee.isLikelier && (callee.keeps || !owns) }
  }
  const placeIn = (/** @type {HeapSite} */ site) =>
    placeOf(locate(site, sources, hello.name))
  const found = withInlined(sites, inlinedAt).map(({ inlinedIn, calledBy, ...site }) => ({
    ...suspectAt(site, site.bytes, sources, hello.name),
    within: withinOf(site, sources),
    through: site.through.map(place => place.slice(0, MOST_NAME_LENGTH)),
    innermost: site.innermost?.slice(0, MOST_NAME_LENGTH) ?? null,
    inlinedIn: inlinedIn && placeIn(inlinedIn),
    also: calledBy && sayInlined(placeIn(calledBy))
  }))
  return listed(found, {
    of, total: totalBytes, owns, isEarly: isEarly && !isOver, app: hello.name
  })
}

/**
 * @typedef {HeapSite & { inlinedIn: HeapSite | null, calledBy: HeapSite | null }} ListedSite
 *   inlinedIn: caller, if only its text names the function; calledBy: caller that has more bytes
 */

/** @typedef {import('./inlined').Callee & { isLikelier?: boolean }} PossibleSite */

/**
 * Sites, each followed by functions that may have been inlined into it, or preceded by one that is
 * likelier. A function that retains objects, and is a site itself, comes before its caller as well:
 * V8 counts for the caller what it allocates once it is inlined.
 * @param {HeapSite[]} sites most bytes first
 * @param {(site: HeapSite) => PossibleSite | PossibleSite[]} inlinedAt returns the callee that most
 *   likely retains the objects, or all callees that may allocate
 * @returns {ListedSite[]}
 */
function withInlined (sites, inlinedAt) {
  const named = sites.slice(0, NAMED_SITES).filter(({ share }) => share >= LEAST_SHARE)
  const siteOf = (/** @type {import('./inlined').Callee} */ { name, file, line }) =>
    named.find(other => other.file === file && other.line === line && other.function === name)
  /** @type {Set<HeapSite>} */
  const listed = new Set()
  return sites.flatMap(site => {
    if (listed.has(site)) return []
    listed.add(site)
    const found = named.includes(site) ? inlinedAt(site) : []
    const callee = Array.isArray(found) ? undefined : found
    const known = callee && siteOf(callee)
    const isLater = known !== undefined && !listed.has(known) && (callee?.isLikelier ||
      (callee?.keeps && known.bytes >= LEAST_KEEPER_RATIO * site.bytes))
    if (isLater) listed.add(known)
    const itself = { ...site, inlinedIn: null, calledBy: null }
    if (isLater) return [{ ...known, inlinedIn: null, calledBy: site }, itself]
    const callees = [found].flat().filter(callee => !siteOf(callee))
    const before = callees.filter(({ isLikelier }) => isLikelier)
    const after = callees.filter(callee => !before.includes(callee))
    return [
      ...before.map(callee => siteOfCallee(callee, site)),
      itself,
      ...after.map(callee => siteOfCallee(callee, site))
    ]
  })
}

/**
 * @param {PossibleSite} callee
 * @param {HeapSite} site caller, into which V8 may have inlined it
 * @returns {ListedSite}
 */
const siteOfCallee = ({ name, file, line, column }, site) => ({
  ...site,
  function: name,
  file,
  line,
  column,
  through: [packageOf(file) ?? '', ...site.through].filter(Boolean),
  inlinedIn: site,
  calledBy: null
})

module.exports = { heapSuspects, innerSuspects }
