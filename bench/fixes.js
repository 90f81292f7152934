'use strict'

/**
 * `npm run bench:fixes`: is what a fix predicts what it brings? Each app with a fix that can be applied from outside runs as
 * it is, then with the fix that was printed, in turn, several times; predicted against measured. Writes docs/predictions.md
 * with --write. About four minutes an app, a Node and a repeat.
 *
 *   npm run bench:fixes -- --nodes /path/to/node20:/path/to/node24 --repeats 3 --write
 */

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFileSync, spawnSync } = require('node:child_process')
const { parseArgs } = require('node:util')
const { median, min, max } = require('simple-statistics')

const MEMWATCH = path.join(__dirname, '../exporter/cli/memwatch.js')
const { values: given } = parseArgs({
  options: {
    nodes: { type: 'string', default: process.execPath },
    apps: { type: 'string', default: 'semi-space-starvation,allocator-fragmentation' },
    repeats: { type: 'string', default: '1' },
    seconds: { type: 'string', default: '60' },
    write: { type: 'boolean', default: false }
  }
})

/** What is compared, by app: the signal predicted, and its value in the summary that the app prints of itself. */
const COMPARED = {
  'semi-space-starvation': { signal: 'gcPauseRatio', title: 'GC pauses, share of wall time', of: summary => summary.gcPauseSeconds / summary.seconds, show: value => `${(100 * value).toFixed(1)} %` },
  'allocator-fragmentation': { signal: 'rssBytes', title: 'RSS, median', of: summary => summary.medianRssBytes, show: value => `${Math.round(value / 2 ** 20)} MiB` }
}

/** @param {string} node @param {string} app @param {{ options?: string[], env?: object }} fix */
function simulate (node, app, { options = [], env = {} } = {}) {
  const file = path.join(folder, 'report.json')
  const { stdout } = spawnSync(process.execPath, [MEMWATCH, 'simulate', app, '--node', node, '--for', given.seconds, '--report', file, ...options],
    { encoding: 'utf8', env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 2 ** 26 })
  const { targets } = JSON.parse(fs.readFileSync(file, 'utf8'))
  const summary = JSON.parse(stdout.split('\n').find(line => line.startsWith('{"lab"')))
  return { primary: targets.find(({ thread }) => thread === 'main').primary, summary }
}

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-fixes-'))
const lines = [
  '| Node | app | fix as printed | what | before | predicted | measured (median, range) | cut predicted / measured | primary after |',
  '|---|---|---|---|---|---|---|---|---|'
]
console.log(lines.join('\n'))
for (const node of given.nodes.split(':')) {
  const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim()
  for (const app of given.apps.split(',')) {
    const { signal, title, of, show } = COMPARED[app]
    const before = []
    const predicted = []
    const after = []
    let fix = 'none: not confirmed'
    let stillWrong = 0
    for (let i = 0; i < Number(given.repeats); i++) {
      const broken = simulate(node, app)
      before.push(of(broken.summary))
      const first = broken.primary?.fix[0]
      if (!first) continue
      const { from, to } = first.predicted.find(prediction => prediction.signal === signal)
      predicted.push(1 - to / from)
      fix = first.change.flag ?? Object.entries(first.change.env).map(([name, value]) => `${name}=${value}`).join(' ')
      const fixed = simulate(node, app, first.change.flag ? { options: [`--node-option=${first.change.flag}`] } : { env: first.change.env })
      after.push(of(fixed.summary))
      if (fixed.primary) stillWrong++
    }
    const row = after.length === 0
      ? [version, app, fix, title, show(median(before)), '–', '–', '–', '–']
      : [
          version, app, `\`${fix}\``, title, show(median(before)), show(median(before) * (1 - median(predicted))),
          `${show(median(after))} (${show(min(after))} – ${show(max(after))})`,
          `${Math.round(100 * median(predicted))} % / ${Math.round(100 * (1 - median(after) / median(before)))} %`,
          stillWrong ? `${stillWrong} of ${after.length} not clear` : 'none'
        ]
    lines.push(`| ${row.join(' | ')} |`)
    console.log(lines.at(-1))
  }
}
fs.rmSync(folder, { recursive: true })

if (given.write) {
  fs.writeFileSync(path.join(__dirname, '../docs/predictions.md'), `# Predictions

What fixes were predicted to bring, and what they brought: lab apps in a memory group of 512 MiB, ${given.repeats} run(s) of ${given.seconds} s each
way, in turn, on one noisy two-core machine. Written by \`npm run bench:fixes -- --write\`; trust the ratios.

${lines.join('\n')}

Semi-spaces: the model is in \`exporter/v8/young-generation.js\`. Scavenges fall in proportion to the size, their cost with its
square root (what is in flight is copied instead of promoted), the majors that promotion caused in proportion. All at the same
work a second; under a closed loop of load the throughput rises instead.

Allocator: what is retained most of the time, times the share that jemalloc gave back (0.85) or the malloc settings did where
the memory lies. The estimate has no access to malloc's own books; it is bounded by malloc's extent in \`/proc/self/maps\`.
`)
}
