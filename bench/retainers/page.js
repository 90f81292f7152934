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
 * docs/retainers.md, from the rows of bench/retainers/results.json.
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
  return `# What holds it

\`memwatch retainers\` names the holder of each pile of objects in a heap snapshot. This page compares its answers with the known holders in snapshots of ${published.length} published leaks, ${own.length} own ones and ${unseen.length} unseen ones.
memlab ${memlab} reads the same files in the same run. Both find paths and retained sizes; memwatch also writes sentences.
A snapshot of ${large ? mib(large.fileBytes) : '–'} MiB takes ${largeSeconds}.

${table([
  ['', 'published leaks', 'own leaks', 'unseen leaks'],
  ['snapshots', published.length, own.length, unseen.length],
  ['true holder named by the first finding', ...[published, own, unseen].map(of => percent(of.filter(({ memwatch }) => memwatch.isNamed).length, of.length))],
  ['package right', ...[published, own, unseen].map(of => percent(of.filter(({ memwatch }) => memwatch.isPackageRight).length, of.length))],
  ['files beside memlab', beside.length, '', ''],
  ['faster and smaller than memlab', `${better.length} of ${beside.length}`, '', ''],
  ['memlab’s time, as a multiple (median)', `${ratio('seconds').toFixed(1)} ×`, '', ''],
  ['memlab’s CPU time, as a multiple (median)', `${ratio('cpuSeconds').toFixed(1)} ×`, '', ''],
  ['memlab’s peak RSS, as a multiple (median)', `${ratio('peakBytes').toFixed(1)} ×`, '', '']
])}

The bench is \`npm run bench:retainers\`, at ${commit}. It measures each command from its start to
its end. The peak is the most resident memory of the command and of its side process, added. memlab
runs as \`getFullHeapFromFile()\` of @memlab/heap-analysis. Other work ran on the machine: CPU time
is the steadier measure. The rules of memwatch were made with the published and the own cases in
view. The unseen apps came later: their true holders were written down before the first run.

## Published leaks

The cases are those of [docs/realworld.md](realworld.md). The truth is from their public threads.

${table([
  ['case', 'truth', 'first finding', 'holder', 'package'],
  ...published.map(({ name, truth, memwatch }) => [
    name, truth, withoutFolder(memwatch.sentence), memwatch.isNamed ? 'named' : '**missed**',
    `${memwatch.package ?? 'none'}${memwatch.isPackageRight ? '' : ' (**wrong**)'}`
  ])
])}

## Own leaks

Each is a way of \`test/support/holding-app.js\`.

${table([
  ['way', 'Node.js', 'truth', 'holder', 'package'],
  ...own.map(({ name, node, truth, memwatch }) => [
    name, node, truth, memwatch.isNamed ? 'named' : '**missed**', memwatch.isPackageRight ? 'right' : '**wrong**'
  ])
])}

## Unseen leaks

Each is an app of \`bench/retainers/unseen/\`. Two snapshots are compared.

${table([
  ['app', 'Node.js', 'truth', 'first finding', 'holder', 'package'],
  ...unseen.map(({ name, node, truth, memwatch }) => [
    name, node, truth, withoutFolder(memwatch.sentence), memwatch.isNamed ? 'named' : '**missed**',
    `${memwatch.package ?? 'none'}${memwatch.isPackageRight ? '' : ' (**wrong**)'}`
  ])
])}

## Beside memlab

*Alike* are objects whose retained size differs by less than 1 %. *Path* says whether memlab's path to
the same object goes through the holder that memwatch names.

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
