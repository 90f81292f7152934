'use strict'

const { nameOwner } = require('@memwatch/engine/text/code-owner')
const { formatBytes, formatRatio, formatSeconds } = require('@memwatch/engine/text/format')
const { isTime } = require('@memwatch/engine/text/suspect-text')

/** Upper bound of the suspects stored for a capture. */
const MOST_SITES = 10
const MOST_PACKAGES = 10
/** A site is listed if it has at least this share of the total. */
const LEAST_LISTED_SHARE = 0.01
/** Length limit of names; longer ones are cut, because a profile may contain any text. */
const MOST_NAME_LENGTH = 256
const MOST_FILE_LENGTH = 1024
/** Name of functions without one. */
const ANONYMOUS = '(anonymous)'
/** Upper bound of the places of all sites on a line. */
const MOST_PLACES = 16

/** @typedef {import('@memwatch/engine/text/suspect-text').Suspects} Suspects */
/** @typedef {import('@memwatch/engine/text/suspect-text').Suspect} Suspect */
/** @typedef {import('./sources').Sources} Sources */

/**
 * A suspect without its text. `also`: end of the text; `innermost`: package nearest to the
 * allocation; `within`: named caller of a function without a name.
 * @typedef {Omit<Suspect, 'text'> &
 *   Partial<Record<'also' | 'innermost' | 'within', string | null>>} UntoldSuspect
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
 * @param {{ function: string, file: string, line: number, column: number }} site
 * @param {Sources} sources
 * @param {string} app name of the app, used if no manifest is readable
 */
function locate (site, sources, app) {
  const original = sources.original(site)
  const name = site.function === ANONYMOUS ? original.function ?? site.function : site.function
  return {
    function: name.slice(0, MOST_NAME_LENGTH),
    file: sources.relative(original.file).slice(0, MOST_FILE_LENGTH),
    line: original.line,
    package: nameOwner(original.file, sources.packageName(original.file) ?? app)
      .slice(0, MOST_NAME_LENGTH)
  }
}

/**
 * @param {{ file: string, line: number, column: number, within: string | null }} site
 * @param {Sources} sources
 * @returns {string | null} named caller of a function without a name; null in a file with a source
 *   map, which does not map the names of callers
 */
const withinOf = ({ within, ...place }, sources) =>
  sources.original(place).file === place.file ? within : null

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
 * Sums up shares by package: of bytes by the package nearest to the allocation, of time by the
 * package that a line of the app calls.
 * @param {UntoldSuspect[]} sites
 * @param {string} app name of the app
 * @returns {import('@memwatch/engine/text/suspect-text').PackageShare[]} worst first
 */
function sumByPackage (sites, app) {
  /** @type {Map<string, { value: number, share: number }>} */
  const sums = new Map()
  for (const { package: name = app, via, innermost, inlinedIn, value, share } of sites) {
    // The bytes of a line that may be inlined are already counted at its caller.
    if (inlinedIn !== null) continue
    const key = innermost ?? via ?? name
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
function told ({ also, innermost, within, ...site }, of, { owns = false, isEarly = false }) {
  const { call, instead, via, inlinedIn, value, share, longestSeconds } = site
  if (inlinedIn) return { ...site, text: `${placeOf(site)} – perhaps, inlined into ${inlinedIn}` }
  const amount = owns
    ? `allocates ${formatRatio(share)} of the objects that pile up at the same time`
    : longestSeconds === null
      ? `${isTime(of) ? '' : `${formatBytes(value)}, `}${formatRatio(share)} ${OF[of]}`
      : `${formatRatio(share)} ${OF[of]}, up to ${formatSeconds(longestSeconds)} in one or more ` +
        'calls in a row'
  const soFar = isEarly ? ' so far; the profile still runs' : ''
  const by = site.file.startsWith('node:') ? ' (Node.js itself, without a call of the app)' : ''
  const what = call === null ? '' : `: ${call}${instead ? `; ${instead} would not block` : ''}`
  const inside = innermost && innermost !== via ? `${via} and ${innermost}` : via
  const name = site.function === ANONYMOUS && within
    ? `${ANONYMOUS} in ${within.slice(0, MOST_NAME_LENGTH)}`
    : site.function
  const where = placeOf({ ...site, function: name }) +
    `${by}${inside ? ` (in ${inside})` : ''}${what}`
  return { ...site, text: `${where} – ${amount}${soFar}${also ? `; ${also}` : ''}` }
}

module.exports = { MOST_NAME_LENGTH, MOST_SITES, listed, locate, placeOf, suspectAt, withinOf }
