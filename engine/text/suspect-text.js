'use strict'

const { originOf } = require('./code-owner')
const { formatBytes, formatRatio, formatSeconds } = require('./format')
const { markdownCode, markdownText } = require('./markdown')

/**
 * Lines of code that a capture identifies.
 * @typedef {object} Suspects
 * @property {'grown bytes' | 'allocated bytes' | 'busy seconds' | 'native seconds' |
 *   'handler seconds' | 'opening seconds'} of native seconds: time in native code that may retain
 *   memory; handler seconds: time in functions that handle data which Node.js reads; opening
 *   seconds: time in calls that open files
 * @property {number} total total in this unit
 * @property {Suspect[]} sites sites, worst first
 * @property {PackageShare[]} [packages] shares of packages over all sites, worst first; absent in
 *   captures of older exporters
 *
 * @typedef {object} Suspect
 * @property {string} function
 * @property {string} file file name; relative to the app's package if that is known
 * @property {number} line from 1
 * @property {number} value value in the unit of `of`
 * @property {number} share of the total
 * @property {string | null} inlinedIn function to which V8 attributed the bytes, if this line may
 *   be in a function inlined into it; null if the bytes were attributed to the line itself
 * @property {string} [package] package that contains the line: see PackageShare; absent in captures
 *   of older exporters
 * @property {string | null} via package that acts on behalf of this line
 * @property {string[]} [through] builtin modules, packages and functions of V8 between this line
 *   and the allocation, including the line's own package; absent in captures of older versions
 * @property {string | null} call blocking call; a native function if the unit is native seconds
 * @property {string | null} instead recommended replacement
 * @property {number | null} longestSeconds longest uninterrupted run on the thread
 * @property {string} text one line
 */

/**
 * Share of one package: bytes or time attributed to its code.
 * @typedef {object} PackageShare
 * @property {string} package name in node_modules; the app's name for its own code; `node` for
 *   Node.js itself
 * @property {number} value in the unit of its list
 * @property {number} share of the total
 *
 * A pile of alike objects in a heap snapshot.
 * @typedef {object} Pile
 * @property {string} text one sentence, without a full stop
 * @property {string} className
 * @property {number} count
 * @property {number} retainedBytes
 * @property {number} [bufferBytes] bytes of Buffers among the retained bytes
 * @property {string | null} package
 * @property {string} root kind of the root that keeps the holder alive
 * @property {string[]} path steps from the root to one of the objects
 *
 * Piles found in a heap snapshot.
 * @typedef {object} Retainers
 * @property {string | null} refused
 * @property {number | null} reachableBytes
 * @property {number | null} [sinceUnixMs] time of an earlier snapshot, since which the piles were
 *   created
 * @property {Pile[]} piles
 * @property {PackageShare[]} [packages] packages whose code holds the piles, largest first
 */

/** Upper bound of the suspects named in a short text. */
const NAMED_SITES = 3
/** Share below which a site is not named in a short text. */
const LEAST_SHARE = 0.05
/** The same for code of Node.js itself, which runs in every process. */
const LEAST_NODE_SHARE = 0.5

/** @param {string} of unit of suspects */
const isTime = of => of.endsWith('seconds')

/**
 * @param {Suspects | null} suspects
 * @returns {string} first suspect, for an alert or a label; empty if none stands out
 */
const shortText = suspects =>
  (suspects?.sites ?? [])
    .filter(({ file, share }) =>
      share >= (originOf(file) === 'node' ? LEAST_NODE_SHARE : LEAST_SHARE))
    .slice(0, NAMED_SITES)
    .map(({ text }) => text)
    .join('; ')

/**
 * @param {PackageShare[]} [packages]
 * @returns {string} the largest packages, such as: lru-cache 80 %, shop 15 %; empty without
 *   packages
 */
const packagesText = (packages = []) =>
  packages
    .slice(0, NAMED_SITES)
    .map(({ package: name, share }) => `${name} ${formatRatio(share)}`)
    .join(', ')

/**
 * @param {{ piles: { text: string }[] } | null} holders
 * @returns {string} the largest pile, for a headline or a message; empty without one
 */
const holderText = holders => holders?.piles[0]?.text ?? ''

/**
 * Text that names the origin of holders.
 * @param {{ file: string | null, sinceUnixMs: number | null }} holders
 * @returns {string} such as: by a heap snapshot, …
 */
function sourceText ({ file, sinceUnixMs }) {
  const written = file === null ? '' : ` that V8 wrote: ${file}`
  const grown = sinceUnixMs === null ? '' : `; only objects newer than ${timeText(sinceUnixMs)}`
  return `by a heap snapshot${written}${grown}`
}

/** @param {number} unixMs */
const timeText = unixMs => new Date(unixMs).toISOString().replace(/\.\d+Z$/, 'Z')

/**
 * @param {{ kind: string, target: string, thread: string, pid: number, node: string,
 *   requestedUnixMs: number, suspects: Suspects | null, retainers?: Retainers | null,
 *   knownBugs?: { text: string, workaround: string | null, thread: string }[] }} capture
 * @returns {string} Markdown to paste into a ticket
 */
function markdown ({ knownBugs = [], ...capture }) {
  const { kind, target, thread, pid, node, requestedUnixMs, suspects, retainers } = capture
  const [name, of, version] = [target, thread, node].map(markdownText)
  const at = new Date(requestedUnixMs).toISOString()
  const head = `**${kind}** of ${name} (${of}, pid ${pid}, Node ${version}), ${at}\n\n`
  if (retainers) return head + retainersMarkdown(retainers)
  if (!suspects) return `${head}This kind of capture names no lines of code.\n`
  if (suspects.sites.length === 0) return `${head}Nothing stands out.\n`
  const cells = suspects.sites.map(
    ({ function: name, file, line, value, share, via, inlinedIn, call, instead }) => [
      markdownCode(name),
      markdownCode(`${file}:${line}`),
      isTime(suspects.of) ? formatSeconds(value) : formatBytes(value),
      formatRatio(share),
      [
        inlinedIn && `perhaps, inlined into ${markdownCode(inlinedIn)}`,
        via && `in ${markdownText(via)}`,
        call && `${markdownCode(call)}${instead ? `, instead: ${markdownText(instead)}` : ''}`
      ]
        .filter(Boolean)
        .join('; ')
    ]
  )
  const ofPackages = packagesMarkdown(suspects.packages, suspects.of)
  return head + ofPackages + tableMarkdown([
    ['function', 'where', suspects.of, 'share', ''],
    ['---', '---', '---:', '---:', '---'],
    ...cells
  ]) + knownBugs.map(({ text, workaround, thread }) => {
    const around = workaround === null ? '' : ` Workaround: ${markdownText(workaround)}.`
    return `\n${markdownText(text)}${around} <${thread}>\n`
  }).join('')
}

/** @param {string[][]} rows */
const tableMarkdown = rows => `${rows.map(row => `| ${row.join(' | ')} |`).join('\n')}\n`

/**
 * @param {PackageShare[]} [packages]
 * @param {string} [unit]
 * @returns {string} a table and an empty line; nothing without packages
 */
function packagesMarkdown (packages = [], unit = '') {
  if (packages.length === 0) return ''
  return `${tableMarkdown([
    ['package', unit, 'share'],
    ['---', '---:', '---:'],
    ...packages.map(({ package: name, value, share }) => [
      markdownText(name),
      isTime(unit) ? formatSeconds(value) : formatBytes(value),
      formatRatio(share)
    ])
  ])}\n`
}

/** @param {Retainers} retainers */
function retainersMarkdown ({ refused, piles, packages, sinceUnixMs = null }) {
  if (refused !== null) return `Not analysed: ${markdownText(refused)}.\n`
  const grown = sinceUnixMs === null ? '' : `Only objects newer than ${timeText(sinceUnixMs)}.\n\n`
  if (piles.length === 0) return 'No pile of similar objects stands out.\n'
  return grown + packagesMarkdown(packages, 'retained bytes') + piles
    .map(({ text, path }) =>
      [`- ${markdownText(text)}.`, ...path.map(line => `  - ${markdownCode(line)}`)].join('\n') + '\n')
    .join('\n')
}

module.exports = {
  shortText,
  holderText,
  packagesText,
  sourceText,
  isTime,
  markdown,
  LEAST_SHARE,
  NAMED_SITES
}
