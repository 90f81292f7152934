'use strict'

const { formatBytes, formatRatio, formatSeconds } = require('./format')
const { markdownCode, markdownText } = require('./markdown')

/**
 * Lines of code that a capture points at.
 * @typedef {object} Suspects
 * @property {'grown bytes' | 'allocated bytes' | 'busy seconds'} of
 * @property {number} total in that unit
 * @property {Suspect[]} sites worst first
 *
 * @typedef {object} Suspect
 * @property {string} function
 * @property {string} file relative to the app's package where that can be seen
 * @property {number} line from 1
 * @property {number} value in the unit of `of`
 * @property {number} share of the total
 * @property {string | null} inlinedIn the function whose bytes these are: V8 counts what it inlines
 *   to the caller, and this may have been; null where it is counted itself
 * @property {string | null} via a package that does it on behalf of this line
 * @property {string[]} [through] builtin modules, packages and functions of V8 on the way from this
 *   line to what is allocated, with its own; absent in captures of older versions
 * @property {string | null} call that blocks
 * @property {string | null} instead of it
 * @property {number | null} longestSeconds it held the thread at a stretch
 * @property {string} text one line
 */

/**
 * What piles up in a heap snapshot.
 * @typedef {{ refused: string | null, piles: { text: string, path: string[] }[] }} Retainers
 */

/** So many are named where there is little room. */
const NAMED_SITES = 3
/** A site of less is not worth a name there. */
const LEAST_SHARE = 0.05

/**
 * @param {Suspects | null} suspects
 * @returns {string} for an alert or a label: the first of them; empty where none stands out
 */
const shortText = suspects =>
  (suspects?.sites ?? [])
    .filter(({ share }) => share >= LEAST_SHARE)
    .slice(0, NAMED_SITES)
    .map(({ text }) => text)
    .join('; ')

/**
 * @param {{ kind: string, target: string, thread: string, pid: number, node: string,
 *   requestedUnixMs: number, suspects: Suspects | null, retainers?: Retainers | null,
 *   knownBugs?: { text: string, workaround: string | null, thread: string }[] }} capture
 * @returns {string} as Markdown, to paste into a ticket
 */
function markdown ({ knownBugs = [], ...capture }) {
  const { kind, target, thread, pid, node, requestedUnixMs, suspects, retainers } = capture
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
    '\n' +
    knownBugs.map(({ text, workaround, thread }) => {
      const around = workaround === null ? '' : ` Workaround: ${markdownText(workaround)}.`
      return `\n${markdownText(text)}${around} <${thread}>\n`
    }).join('')
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
