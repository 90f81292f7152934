'use strict'

/** @typedef {import('../retainers').Row} Row */

const MIB = 2 ** 20

/** @param {(string | number)[][]} rows */
const table = ([head, ...rows]) =>
  [head, head.map((_, i) => (i === 0 ? '---' : '---:')), ...rows]
    .map(row => `| ${row.map(cell => String(cell).replaceAll('|', '\\|')).join(' | ')} |`)
    .join('\n')

const mib = (/** @type {number} */ bytes) => Math.round(bytes / MIB)
const percent = (/** @type {number} */ part, /** @type {number} */ whole) =>
  whole === 0 ? '–' : `${Math.round((100 * part) / whole)} %`

/** Removes the path of the tools folder, which depends on the machine. @param {string} sentence */
const withoutFolder = sentence =>
  sentence.replace(/\S*\/(realworld|retainers\/unseen)\/[^/]+\//g, '')

/** @param {number[]} values */
const median = values => values.toSorted((a, b) => a - b)[values.length >> 1] ?? NaN

/**
 * Builds docs/retainers.md from the rows of bench/retainers/results.json.
 * @param {Row[]} rows
 * @param {{ commit: string, memlab: string }} of
 * @returns {string}
 */
function retainersPage (rows, { commit, memlab }) {
  const published = rows.filter(({ kind }) => kind === 'published')
  const own = rows.filter(({ kind }) => kind === 'own')
  const unseen = rows.filter(({ kind }) => kind === 'unseen')
  const beside = rows.filter(row => row.memlab !== null && !('failed' in row.memlab))
  const large = rows.find(({ kind }) => kind === 'large')
  const ratio = (/** @type {'seconds' | 'cpuSeconds' | 'peakBytes'} */ name) =>
    median(beside.map(({ memwatch, memlab: other }) =>
      other && !('failed' in other) ? other[name] / memwatch[name] : NaN))
  const better = beside.filter(({ memwatch, memlab: other }) =>
    other && !('failed' in other) &&
    memwatch.seconds < other.seconds && memwatch.peakBytes < other.peakBytes)
  const largeSeconds = large ? `${large.memwatch.seconds.toFixed(0)} s and ${mib(large.memwatch.peakBytes)} MiB` : 'not measured'
  return `# Holders in heap snapshots

\`memwatch retainers\` names the holder of each pile of objects in a heap snapshot. This page compares its answers with the known holders in snapshots of ${published.length} published leaks, ${own.length} leaks of memwatch's own tests and ${unseen.length} unseen leaks.
memlab ${memlab} reads the same files in the same run. Both find paths and retained sizes; memwatch also writes sentences.
A snapshot of ${large ? mib(large.fileBytes) : '–'} MiB takes ${largeSeconds}.

${table([
  ['', 'published leaks', 'own leaks', 'unseen leaks'],
  ['snapshots', published.length, own.length, unseen.length],
  ['first finding names the true holder', ...[published, own, unseen].map(of => percent(of.filter(({ memwatch }) => memwatch.isNamed).length, of.length))],
  ['package right', ...[published, own, unseen].map(of => percent(of.filter(({ memwatch }) => memwatch.isPackageRight).length, of.length))],
  ['files that both read', beside.length, '', ''],
  ['faster than memlab, with less memory', `${better.length} of ${beside.length}`, '', ''],
  ['memlab’s time divided by memwatch’s (median)', `${ratio('seconds').toFixed(1)} ×`, '', ''],
  ['memlab’s CPU time divided by memwatch’s (median)', `${ratio('cpuSeconds').toFixed(1)} ×`, '', ''],
  ['memlab’s peak RSS divided by memwatch’s (median)', `${ratio('peakBytes').toFixed(1)} ×`, '', '']
])}

The bench is \`npm run bench:retainers\`, at ${commit}. It measures each command from its start to its end. The peak RSS is the sum of the peaks of the command and of its side process. memlab
runs as \`getFullHeapFromFile()\` of @memlab/heap-analysis. Other work ran on the machine, so CPU time is more reliable than time. The rules of memwatch were made with the published cases and with the project's own cases. The unseen apps were written later, and their true holders were noted before the first run.

## Published leaks

The cases are those of [docs/realworld.md](realworld.md). The true holder is from the public thread of each case.

${table([
  ['case', 'true holder', 'first finding', 'holder', 'package'],
  ...published.map(({ name, truth, memwatch }) => [
    name, truth, withoutFolder(memwatch.sentence), memwatch.isNamed ? 'named' : '**missed**',
    `${memwatch.package ?? 'none'}${memwatch.isPackageRight ? '' : ' (**wrong**)'}`
  ])
])}

## Own leaks

\`test/support/holding-app.js\` contains these leaks.

${table([
  ['way', 'Node.js', 'true holder', 'holder', 'package'],
  ...own.map(({ name, node, truth, memwatch }) => [
    name, node, truth, memwatch.isNamed ? 'named' : '**missed**', memwatch.isPackageRight ? 'right' : '**wrong**'
  ])
])}

## Unseen leaks

The apps are in \`bench/retainers/unseen/\`. memwatch compares two snapshots of each.

${table([
  ['app', 'Node.js', 'true holder', 'first finding', 'holder', 'package'],
  ...unseen.map(({ name, node, truth, memwatch }) => [
    name, node, truth, withoutFolder(memwatch.sentence), memwatch.isNamed ? 'named' : '**missed**',
    `${memwatch.package ?? 'none'}${memwatch.isPackageRight ? '' : ' (**wrong**)'}`
  ])
])}

## Comparison with memlab

*Alike* is the share of objects whose retained size differs by less than 1 % between both tools.
*Path* is "same" if memlab's path to the object contains the holder that memwatch names.

${table([
  ['case', 'file, MiB', 'memwatch, s', 'memlab, s', 'memwatch, CPU s', 'memlab, CPU s', 'memwatch, MiB', 'memlab, MiB', 'alike', 'path'],
  ...rows.filter(row => row.memlab !== null).map(({ name, fileBytes, memwatch, memlab: other }) => [
    name,
    mib(fileBytes),
    memwatch.seconds.toFixed(1),
    other && !('failed' in other) ? other.seconds.toFixed(1) : 'failed',
    memwatch.cpuSeconds.toFixed(1),
    other && !('failed' in other) ? other.cpuSeconds.toFixed(1) : '–',
    mib(memwatch.peakBytes),
    other && !('failed' in other) ? mib(other.peakBytes) : '–',
    other && !('failed' in other) ? percent(other.alike, other.compared) : '–',
    other && !('failed' in other) ? (other.isOnPath ? 'same' : 'another') : '–'
  ])
])}
`
}

module.exports = { retainersPage }
