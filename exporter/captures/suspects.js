'use strict'

const { nameOwner, packageOf } = require('@memwatch/engine/text/code-owner')
const { formatBytes, formatRatio, formatSeconds } = require('@memwatch/engine/text/format')
const { isTime, LEAST_SHARE, NAMED_SITES } = require('@memwatch/engine/text/suspect-text')
const { blockingCallIn } = require('./blocking-calls')
const { cpuSuspects } = require('./cpu-suspects')
const { dataHandlers } = require('./data-handlers')
const { fileOpens } = require('./file-opens')
const { appFirst, findOwners, heapSuspects, leadingPackage } = require('./heap-suspects')
const { InlinedCallees } = require('./inlined')
const { innerCalls } = require('./inner-calls')
const { nativeCalls } = require('./native-calls')
const { OUTSIDE_HEAP } = require('./plan-capture')
const { Sources } = require('./sources')

/** Upper bound of the suspects stored for a capture. */
const MOST_SITES = 10
/**
 * Least bytes of a function that comes before its caller, as a share of the caller's: a helper that
 * counts calls retains little beside a caller that retains much. Functions that V8 had inlined had
 * 0.29 and 0.6.
 */
const LEAST_KEEPER_RATIO = 0.2
/** The same for a function that a CPU profile shows inside the caller; one had 0.15. */
const LEAST_INNER_RATIO = 0.1
const MOST_PACKAGES = 10
/** A site is listed if it has at least this share of the total. */
const LEAST_LISTED_SHARE = 0.01
/** Length limit of names; longer ones are cut, because a profile may contain any text. */
const MOST_NAME_LENGTH = 256
const MOST_FILE_LENGTH = 1024
/** Upper bound of the places of all sites on a line. */
const MOST_PLACES = 16
/** Shortest uninterrupted time of a site that counts as blocking the thread. */
const BLOCKED_SECONDS = 0.02

/**
 * Suspects of a profile. `of` names the total to which shares refer.
 * @typedef {import('@memwatch/engine/text/suspect-text').Suspects} Suspects
 * @typedef {import('@memwatch/engine/text/suspect-text').Suspect} Suspect
 */

/**
 * @param {Pick<import('./captures').Capture, 'kind' | 'parts' | 'diagnosis'> &
 *   { isEarly?: boolean, isOver?: boolean, names?: import('./rules').CaptureRule['names'] }} capture
 *   isEarly: true for a heap profile of which only the first reading is used; it also contains
 *   objects of unfinished requests. isOver: true if the profile no longer runs. names: see rules.js
 * @param {(part: string) => any} read reads a part of the capture as a profile
 * @param {import('@memwatch/agent/protocol/frame').Hello} hello hello of the target whose files may
 *   be read
 * @param {Sources} [sources] files of the app
 * @param {HeapProfiles | null} [heap] for a CPU profile that names functions inside a package: the
 *   heap profile that named the package; null if it is gone
 * @returns {Suspects | null} null for a kind that names no lines
 * @throws {Error} when a part is no profile
 */
function suspectsOf (
  { kind, parts, diagnosis, isEarly = false, isOver = false, names },
  read,
  hello,
  sources = Sources.of(hello),
  heap = undefined
) {
  const owns = diagnosis !== null && OUTSIDE_HEAP.has(diagnosis)
  if (kind === 'heap_profile' || kind === 'allocation_profile') {
    const before = parts.some(({ part }) => part === 'before') ? read('before') : undefined
    const of = kind === 'heap_profile' ? 'grown bytes' : 'allocated bytes'
    const profiles = { before, after: read('profile') }
    return heapSites(profiles, { of, owns, isEarly, isOver }, hello, sources)
  }
  if (kind !== 'cpu_profile') return null
  const profile = read('profile')
  if (heap !== undefined) {
    return (heap && innerSites(profile, heap, owns, hello, sources)) ??
      { of: 'grown bytes', total: 0, sites: [], packages: [] }
  }
  if (names === 'handlers') return handlersOfBuffers(profile, hello, sources)
  if (names === 'opens') {
    return timeSites(fileOpens(profile, hello.agentFolder), 'opening seconds', hello, sources)
  }
  switch (diagnosis) {
    case 'native-memory-leak':
      return timeSites(nativeCalls(profile, hello.agentFolder), 'native seconds', hello, sources)
    case 'js-heap-leak':
      return timeSites(dataHandlers(profile, hello.agentFolder), 'handler seconds', hello, sources)
    default: return busySites(profile, hello, sources)
  }
}

/**
 * Least share of the busy time in handlers of data that makes them suspects of Buffers: nearly
 * every server has such a handler.
 */
const LEAST_HANDLER_SHARE = 0.03

/**
 * @param {import('./cpu-suspects').CpuProfile} profile
 * @param {Hello} hello
 * @param {Sources} sources
 * @returns {Suspects} without sites if the app spends its time elsewhere
 */
function handlersOfBuffers (profile, hello, sources) {
  const found = dataHandlers(profile, hello.agentFolder)
  const { busySeconds } = cpuSuspects(profile, hello.agentFolder)
  const isMuch = found.totalSeconds >= LEAST_HANDLER_SHARE * busySeconds
  return timeSites(isMuch ? found : { ...found, sites: [] }, 'handler seconds', hello, sources)
}

/** @typedef {import('@memwatch/agent/protocol/frame').Hello} Hello */
/**
 * @typedef {{ before: import('./heap-suspects').HeapProfile | undefined,
 *   after: import('./heap-suspects').HeapProfile }} HeapProfiles both readings of a heap profile
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
function innerSites (profile, heap, owns, hello, sources) {
  const { sites: all } = heapSuspects(heap.before, heap.after, hello.agentFolder)
  const outer = leadingPackage(owns ? findOwners(all) : all)
  if (!outer) return null
  const suspects = heapSites(heap, { of: 'grown bytes', owns }, hello, sources)
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
 * @param {{ of: 'grown bytes' | 'allocated bytes', owns: boolean, isEarly?: boolean,
 *   isOver?: boolean }} options owns: true if objects on the heap own the growing memory outside
 *   it; isEarly: true to name only sites with enough samples; isOver: true if it no longer runs
 * @param {Hello} hello
 * @param {Sources} sources
 * @returns {Suspects}
 */
function heapSites ({ before, after }, { of, owns, isEarly, isOver }, hello, sources) {
  const { totalBytes, sites: all } = heapSuspects(before, after, hello.agentFolder)
  const sites = appFirst(owns || isEarly ? findOwners(all) : all)
  const callees = new InlinedCallees(file => sources.text(file))
  // For a heap profile one callee is named, the one that most likely retains the objects; in an
  // allocation profile all callees may have allocated.
  /** @returns {PossibleSite | PossibleSite[]} */
  const inlinedAt = (/** @type {import('./heap-suspects').HeapSite} */ site) => {
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
  const placeIn = (/** @type {import('./heap-suspects').HeapSite} */ site) =>
    placeOf(locate(site, sources, hello.name))
  const found = withInlined(sites, inlinedAt).map(({ inlinedIn, calledBy, ...site }) => ({
    ...suspectAt(site, site.bytes, sources, hello.name),
    through: site.through.map(place => place.slice(0, MOST_NAME_LENGTH)),
    inlinedIn: inlinedIn && placeIn(inlinedIn),
    also: calledBy && sayInlined(placeIn(calledBy))
  }))
  return listed(found, {
    of, total: totalBytes, owns, isEarly: isEarly && !isOver, app: hello.name
  })
}

/**
 * @param {import('./cpu-suspects').CpuProfile} profile
 * @param {Hello} hello
 * @param {Sources} sources
 * @returns {Suspects}
 */
function busySites (profile, hello, sources) {
  const { busySeconds, sites } = cpuSuspects(profile, hello.agentFolder)
  const found = sites.map(site => {
    const blocking =
      site.longestSeconds < BLOCKED_SECONDS
        ? undefined
        : site.call === null
          ? blockingCallAt(site, sources)
          : site
    const { call, instead } = blocking ?? { call: null, instead: null }
    return {
      ...suspectAt(site, site.seconds, sources, hello.name),
      call,
      instead,
      longestSeconds: site.longestSeconds
    }
  })
  return listed(found, { of: 'busy seconds', total: busySeconds, app: hello.name })
}

/**
 * @param {ReturnType<typeof nativeCalls>} time of one kind
 * @param {'native seconds' | 'handler seconds' | 'opening seconds'} of
 * @param {Hello} hello
 * @param {Sources} sources
 * @returns {Suspects}
 */
function timeSites ({ totalSeconds, sites }, of, hello, sources) {
  const found = sites.map(site => ({
    ...suspectAt(site, site.seconds, sources, hello.name),
    call: site.call !== null && mayCall(site, site.call, sources) ? site.call : null
  }))
  return listed(found, { of, total: totalSeconds, app: hello.name })
}

/** Lines of a function in which its calls are sought. */
const MOST_FUNCTION_LINES = 100
const CALL_NAME = /^[A-Za-z_$][\w$]*$/

/**
 * True if the text of a function contains a call of this name. V8 confuses the names of functions
 * of Node-API addons, because all of them begin at one address.
 * @param {import('./cpu-sites').CpuTimeSite} site
 * @param {string} name
 * @param {Sources} sources
 */
const mayCall = ({ file, line }, name, sources) => CALL_NAME.test(name) &&
  sources.lines(file, line, line + MOST_FUNCTION_LINES)
    .some(text => text.includes(`${name}(`) || text.includes(`${name} (`))

/**
 * A suspect without its text. `also`: end of the text.
 * @typedef {Omit<Suspect, 'text'> & { also?: string | null }} UntoldSuspect
 */

/**
 * @param {UntoldSuspect[]} found
 * @param {{ of: Suspects['of'], total: number, owns?: boolean, isEarly?: boolean, app: string }}
 *   options
 * @returns {Suspects}
 */
const listed = (found, { of, total, owns, isEarly, app }) => ({
  of,
  total,
  sites: merged(found).map(site => told(site, of, { owns, isEarly })),
  packages: sumByPackage(found, app)
})

/**
 * Finds the blocking call on a line. V8's own work, such as JSON.parse, has no frame: its time is
 * the caller's own time, on the line of the call. A call that takes none of the time is not named.
 * @param {import('./cpu-suspects').CpuSite} site
 * @param {Sources} sources
 * @returns {{ call: string, instead: string } | undefined}
 */
function blockingCallAt ({ file, line, isLineOwn }, sources) {
  const [text] = isLineOwn ? sources.lines(file, line) : []
  return text === undefined ? undefined : blockingCallIn(text)
}

/**
 * @param {{ function: string, file: string, line: number, column: number }} site
 * @param {Sources} sources
 * @param {string} app name of the app, used if no manifest is readable
 */
function locate (site, sources, app) {
  const original = sources.original(site)
  const name = site.function === '(anonymous)' ? original.function ?? site.function : site.function
  return {
    function: name.slice(0, MOST_NAME_LENGTH),
    file: sources.relative(original.file).slice(0, MOST_FILE_LENGTH),
    line: original.line,
    package: nameOwner(original.file, sources.packageName(original.file) ?? app)
      .slice(0, MOST_NAME_LENGTH)
  }
}

/** @typedef {import('./heap-suspects').HeapSite} HeapSite */
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

/**
 * @param {Parameters<typeof locate>[0] & { share: number, via: string | null }} site
 * @param {number} value in the unit of the suspects
 * @param {Sources} sources
 * @param {string} app
 * @returns {Omit<Suspect, 'text'>} suspect of which only place and amount are known
 */
const suspectAt = (site, value, sources, app) => ({
  ...locate(site, sources, app),
  value,
  share: site.share,
  via: site.via,
  through: [],
  inlinedIn: null,
  call: null,
  instead: null,
  longestSeconds: null
})

/** @param {{ function: string, file: string, line: number }} site */
const placeOf = ({ function: name, file, line }) => `${name} ${file}:${line}`

/**
 * Merges functions on one line to one suspect, and omits small suspects.
 * @param {UntoldSuspect[]} sites
 * @returns {UntoldSuspect[]} suspects in the order of their first sites
 */
function merged (sites) {
  /** @type {Map<string, UntoldSuspect>} */
  const byPlace = new Map()
  for (const site of sites) {
    const key = JSON.stringify([site.file, site.line, site.via, site.inlinedIn, site.call])
    const known = byPlace.get(key)
    if (!known) byPlace.set(key, { ...site })
    else {
      Object.assign(known, {
        value: known.value + site.value,
        share: known.share + site.share,
        through: [...new Set([known.through ?? [], site.through ?? []].flat())]
          .slice(0, MOST_PLACES),
        longestSeconds:
          site.longestSeconds === null
            ? null
            : Math.max(known.longestSeconds ?? 0, site.longestSeconds)
      })
    }
  }
  return [...byPlace.values()]
    .filter(({ share }, i) => i === 0 || share >= LEAST_LISTED_SHARE)
    .slice(0, MOST_SITES)
}

/**
 * Sums up shares by the innermost package on the stack, which allocates or computes for a line of
 * the app.
 * @param {Omit<Suspect, 'text'>[]} sites
 * @param {string} app name of the app
 * @returns {import('@memwatch/engine/text/suspect-text').PackageShare[]} worst first
 */
function sumByPackage (sites, app) {
  /** @type {Map<string, { value: number, share: number }>} */
  const sums = new Map()
  for (const { package: name = app, via, inlinedIn, value, share } of sites) {
    // The bytes of a line that may be inlined are already counted at its caller.
    if (inlinedIn !== null) continue
    const key = via ?? name
    const sum = sums.get(key) ?? { value: 0, share: 0 }
    sums.set(key, { value: sum.value + value, share: sum.share + share })
  }
  return [...sums]
    .map(([name, sum]) => ({ package: name, ...sum }))
    .sort((a, b) => b.value - a.value)
    .filter(({ share }, i) => i === 0 || share >= LEAST_LISTED_SHARE)
    .slice(0, MOST_PACKAGES)
}

/** @type {Record<Suspects['of'], string>} */
const OF = {
  'grown bytes': 'of the new memory still in use',
  'allocated bytes': 'of all allocations',
  'busy seconds': 'of the busy time',
  'native seconds': 'of the time in native code, apart from input and output',
  'handler seconds': 'of the time in handlers of data that Node.js reads',
  'opening seconds': 'of the time in calls that open files'
}

/**
 * @param {UntoldSuspect} untold
 * @param {Suspects['of']} of
 * @param {{ owns?: boolean, isEarly?: boolean }} options owns: true if the growth consists of
 *   objects that own memory or handles outside the heap; isEarly: true while the profile runs
 * @returns {Suspect}
 */
function told ({ also, ...site }, of, { owns = false, isEarly = false }) {
  const { call, instead, via, inlinedIn, value, share, longestSeconds } = site
  if (inlinedIn) return { ...site, text: `${placeOf(site)} – perhaps, inlined into ${inlinedIn}` }
  const amount = owns
    ? `allocates ${formatRatio(share)} of the objects that pile up at the same time`
    : longestSeconds === null
      ? `${isTime(of) ? '' : `${formatBytes(value)}, `}${formatRatio(share)} ${OF[of]}`
      : `${formatRatio(share)} ${OF[of]}, up to ${formatSeconds(longestSeconds)} at a stretch`
  const soFar = isEarly ? ' so far; the profile still runs' : ''
  const by = site.file.startsWith('node:') ? ' (Node.js itself, without a call of the app)' : ''
  const what = call === null ? '' : `: ${call}${instead ? `; ${instead} would not block` : ''}`
  const where = `${placeOf(site)}${by}${via ? ` (in ${via})` : ''}${what}`
  return { ...site, text: `${where} – ${amount}${soFar}${also ? `; ${also}` : ''}` }
}

module.exports = { suspectsOf }
