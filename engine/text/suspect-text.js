'use strict'

const { formatBytes, formatRatio, formatSeconds } = require('./format')
const { markdownCode, markdownText } = require('./markdown')

/**
 * Lines of code that a capture identifies.
 * @typedef {object} Suspects
 * @property {'grown bytes' | 'allocated bytes' | 'busy seconds'} of
 * @property {number} total in that unit
 * @property {Suspect[]} sites worst first
 *
 * @typedef {object} Suspect
 * @property {string} function
 * @property {string} file relative to the app's package where that is known
 * @property {number} line from 1
 * @property {number} value in the unit of `of`
 * @property {number} share of the total
 * @property {string | null} inlinedIn function that these bytes are counted under. V8 counts
 *   inlined functions to their caller, and this line may be one; null if the line has its own count
 * @property {string | null} via package that acts on behalf of this line
 * @property {string | null} call blocking call
 * @property {string | null} instead recommended replacement
 * @property {number | null} longestSeconds longest uninterrupted run on the thread
 * @property {string} text one line
 */

/**
 * Piles in a heap snapshot.
 * @typedef {{ refused: string | null, piles: { text: string, path: string[] }[] }} Retainers
 */

/** Number of suspects named where space is short. */
const NAMED_SITES = 3
/** Share below which a site is not named there. */
const LEAST_SHARE = 0.05

/**
 * @param {Suspects | null} suspects
 * @returns {string} first suspect, for an alert or a label; empty if none stands out
 */
const shortText = suspects =>
  (suspects?.sites ?? [])
    .filter(({ share }) => share >= LEAST_SHARE)
    .slice(0, NAMED_SITES)
    .map(({ text }) => text)
    .join('; ')

/**
 * @param {{ kind: string, target: string, thread: string, pid: number, node: string,
 *   requestedUnixMs: number, suspects: Suspects | null, retainers?: Retainers | null }} capture
 * @returns {string} as Markdown, to paste into a ticket
 */
function markdown ({ kind, target, thread, pid, node, requestedUnixMs, suspects, retainers }) {
  const [name, of, version] = [target, thread, node].map(markdownText)
  const at = new Date(requestedUnixMs).toISOString()
  const head = `**${kind}** of ${name} (${of}, pid ${pid}, Node ${version}), ${at}\n\n`
  if (retainers) return head + retainersMarkdown(retainers)
  if (!suspects) return `${head}This kind of capture points at no line of code.\n`
  if (suspects.sites.length === 0) return `${head}Nothing stands out.\n`
  const cells = suspects.sites.map(
    ({ function: name, file, line, value, share, via, inlinedIn, call, instead }) => [
      markdownCode(name),
      markdownCode(`${file}:${line}`),
      suspects.of === 'busy seconds' ? formatSeconds(value) : formatBytes(value),
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
  return (
    head +
    [
      ['function', 'where', suspects.of, 'share', ''],
      ['---', '---', '---:', '---:', '---'],
      ...cells
    ]
      .map(row => `| ${row.join(' | ')} |`)
      .join('\n') +
    '\n'
  )
}

/** @param {Retainers} retainers */
function retainersMarkdown ({ refused, piles }) {
  if (refused !== null) return `Not analysed: ${markdownText(refused)}.\n`
  if (piles.length === 0) return 'No pile of alike objects stands out.\n'
  return piles
    .map(({ text, path }) =>
      [`- ${markdownText(text)}.`, ...path.map(line => `  - ${markdownCode(line)}`)].join('\n') + '\n')
    .join('\n')
}

module.exports = { shortText, markdown, LEAST_SHARE, NAMED_SITES }
