'use strict'

const { median, quantile } = require('simple-statistics')
const { againstTargets } = require('./overhead-targets')
const { readWork, workSection } = require('./overhead-work-page')

/**
 * @typedef {{ key: string, title: string, of: (run: any, base: any) => number | null, unit: (value:
 *   number) => string, apps: string[] }} Column
 */

const mib = (/** @type {number} */ bytes) => (bytes / 2 ** 20).toFixed(1)
const signed = (/** @type {number} */ value, /** @type {number} */ digits) => `${value > 0 ? '+' : ''}${value.toFixed(digits)}`

/** Columns that are compared with the run of the same round without anything. @type {Column[]} */
const COLUMNS = [
  {
    key: 'throughput',
    title: 'throughput, %',
    of: (run, base) => 100 * (run.requestsPerSecond / base.requestsPerSecond - 1),
    unit: value => signed(value, 1),
    apps: ['api', 'allocating']
  },
  {
    key: 'cpu',
    title: 'CPU a request, %',
    of: (run, base) => 100 * (run.cpuMicrosPerRequest / base.cpuMicrosPerRequest - 1),
    unit: value => signed(value, 1),
    apps: ['api', 'allocating']
  },
  {
    key: 'p50',
    title: 'p50, ms',
    of: (run, base) => run.p50Ms - base.p50Ms,
    unit: value => signed(value, 2),
    apps: ['api', 'allocating']
  },
  {
    key: 'p99',
    title: 'p99, ms',
    of: (run, base) => run.p99Ms - base.p99Ms,
    unit: value => signed(value, 2),
    apps: ['api', 'allocating']
  },
  {
    key: 'idleCpu',
    title: 'CPU, % of a core',
    of: (run, base) => 100 * (run.cpuShare - base.cpuShare),
    unit: value => signed(value, 3),
    apps: ['idle']
  },
  {
    key: 'loops',
    title: 'turns of the loop a second',
    of: (run, base) =>
      run.loopsPerSecond === null ? null : run.loopsPerSecond - base.loopsPerSecond,
    unit: value => signed(value, 1),
    apps: ['idle']
  },
  {
    key: 'rss',
    title: 'RSS, MiB',
    of: (run, base) => run.rss - base.rss,
    unit: value => `${value > 0 ? '+' : ''}${mib(value)}`,
    apps: ['idle', 'api', 'allocating']
  },
  {
    key: 'anon',
    title: 'of it anonymous, MiB',
    of: (run, base) => run.anon - base.anon,
    unit: value => `${value > 0 ? '+' : ''}${mib(value)}`,
    apps: ['idle', 'api', 'allocating']
  },
  {
    key: 'start',
    title: 'start, ms',
    of: (run, base) => run.startedMs - base.startedMs,
    unit: value => signed(value, 1),
    apps: ['idle', 'api', 'allocating']
  }
]

/** Why it costs what it does; measured by hand, on Node 20 to 26. */
const WHY = `Medians of every Node and app, from the least to the most. Why memory and the frame are not cheaper:

- **Memory.** After a full GC the agent holds 0.85 to 0.95 MiB of heap: 0.16 are Node's own list of the flags it allows, 0.4 the agent's code, the rest
  modules of Node it needs and bytecode. What it leaves behind as it loads makes an app that has hardly begun take a second semi-space, of a MiB. And as
  it is loaded, V8 finds Node's functions for paths worth compiling: without its optimizing compilers the file pages fall from 3.5 to 1.1 MiB on Node 24 and from 4.5
  to 0.6 on Node 20. An app that loads a few dozen modules has both anyway; the file pages are shared by all processes of the same Node. An app that never does anything would go
  without yet more, which V8 takes as soon as it compiles and collects at all, new space and malloc's arenas of its threads: after four minutes 1.9, 4.2, 4.8 and 3.7 MiB anonymous on Node 20, 22, 24
  and 26 (medians of four processes). It was 2.9, 4.9, 5.2 and 4.4 (of three) while the agent looked at the memory map every ten seconds though nothing moved, and 0.079 to 0.089 % of a core
  beside 0.069 to 0.081 now (both at a time, three processes each, for 90 seconds from the 45th on); without any look, and as one file, still 2.7, 3.2, 4.7 and 3.2.
- **Memory under load.** V8 doubles its semi-spaces once more survives than they hold, and a little more beside the app brings the step: on Node 24 an observer of GCs with an empty
  callback alone made 45 MiB of 40, as the agent does. It comes sooner, that is all: a JSON API on Node 20 and 24 had 8 MiB of new space after 100,000 requests, 14 with the agent or with
  an empty observer, and after 400,000 requests 14 in each case. Anonymous memory meanwhile: 1.7 to 6.3 MiB more with the agent on Node 20 and 7 to 14 on Node 24 (three runs each of 10,000, 30,000
  and 100,000 requests, by twenty clients); after 400,000 it was 1.5 and 9 (one run; on Node 24 malloc's part differs by 4.6 MiB between runs with nothing).
- **Start**: by the clock 3 ms (medians of 40 starts each of Node 20 and 24, an HTTP server that listens, in turn with and without the agent; CPU time the same); in the rounds below two
  starts without anything differ by more.
- **The frame** is cold code: sampled once a second, three quarters of its time lie in V8's builtins and Node's C++, spread over some hundred functions of which none takes
  a twentieth, a sixth in the kernel. Read back to back it takes 30 µs. Seven calls like those it is made of, each made alone once a second in a process without any
  agent, add up to 270 to 330 µs: what a frame takes above that is the agent's. Its functions compiled beforehand, by thousands of runs, take a quarter less. A frame
  of nothing but GC counts takes 110 to 120 µs on Node 22, 24 and 26, and 170 on Node 20, to encode and send it mostly. Nor does it help to read all in every third frame, and
  GCs and the loop's delay alone in between, as a changed copy of the agent did: 181 to 335 µs in the middle on Node 22, 182 to 245 on 24 and 223 to 287 on 20, where the agent took 325 to 467 in
  the same five apps, and 490 of 620 with 3,800 GCs a second on Node 24. Memory is read in each frame: what is known last of an app that is killed for memory is of its last second. See [growth](growth.md).
- **GCs**: in an API that collects fifty times a second, what Node itself does for each GC that is observed is the larger part of all that the agent costs: by samples of CPU time 0.3 to 0.5 %, beside 0.1 to 0.2 % of its own.
  (The profiles below count by the clock: what else ran on the machine meanwhile is in them.) Node 20 defines two deprecated properties on each entry. Every observer of GCs pays this, the agent where it
  cannot use V8's own callbacks.
- **Throughput** of one process differs from that of the next by more than the agent takes, so that rounds do not tell it. Nor did turns of two seconds each, of four processes at a time of the JSON
  API on Node 24 under full load, eight times (24 turns): with the agent 2.6 % fewer requests (9.9 fewer to 2.6 more), with an observer of GCs with an empty callback 4.0 % fewer (1.5 to 9.8), with nothing again 0.8 % fewer (5.5 fewer to
  5.3 more); in a first try, twice three processes (32 turns), 4.2 % fewer with the agent (0.8 to 8.7) and 2.6 % more with nothing again (2.8 fewer to 4.4 more). The agent is not to be told from the empty observer; that observing itself costs more than half a percent there is likely, and the profiles below say the same.`

/**
 * @param {string[]} head
 * @param {string[][]} rows
 */
const table = (head, rows) =>
  [
    `| ${head.join(' | ')} |`,
    `|${head.map(() => ' --- ').join('|')}|`,
    ...rows.map(row => `| ${row.join(' | ')} |`)
  ].join('\n')

const percent = (/** @type {number} */ share) => `${(100 * share).toFixed(2)} %`

/**
 * @template T
 * @param {T[]} list
 * @returns {T[]}
 */
const distinct = list => [...new Set(list)]

/**
 * docs/overhead.md: medians of the differences to "nothing" of the same round, with their
 * quartiles.
 * @param {any[]} runs see overhead.js
 * @param {any[]} shares see overhead.js
 * @returns {string}
 */
function overheadPage (runs, shares) {
  const sections = [
    '# Cost for the app',
    '<!-- Written by npm run bench:overhead -- --write; do not edit. -->\n' +
      'The same app ran with nothing, and with each of these; a line has the median of the ' +
      'differences to "nothing" in the same round, with the quartiles in brackets. Rounds ' +
      'alternate, on a machine with two cores that load and app share; memwatch, prom- ' +
      'client and OpenTelemetry report each second, dd-trace every ten. A difference below ' +
      'that between nothing and nothing again is noise; the CPU profiles show it instead. ' +
      'In an app that allocates much, V8 may settle in one of two states of its heap: the ' +
      'quartiles lie far apart there, and a median says little.'
  ]
  sections.push(
    '## Against its targets',
    table(['what', 'at most', 'memwatch', 'nothing, again', ''], againstTargets(runs, COLUMNS)),
    WHY,
    ...[workSection(readWork())].filter(text => text !== '')
  )
  for (const node of distinct(runs.map(run => run.node))) {
    for (const app of distinct(runs.map(run => run.app))) {
      const here = runs.filter(run => run.node === node && run.app === app)
      const columns = COLUMNS.filter(({ apps }) => apps.includes(app))
      const bases = here.filter(({ variant }) => variant === 'none')
      if (bases.length === 0) continue
      const rows = distinct(here.map(({ variant }) => variant))
        .filter(variant => variant !== 'none')
        .map(variant => [
          variant === 'none-again' ? 'nothing, again' : variant,
          ...columns.map(({ of, unit }) => {
            const differences = here
              .filter(run => run.variant === variant)
              .map(run =>
                of(
                  run,
                  bases.find(({ round }) => round === run.round)
                )
              )
              .flatMap(value => (Number.isFinite(value) ? [Number(value)] : []))
            return differences.length === 0
              ? '–'
              : `${unit(median(differences))} (${unit(quantile(differences, 0.25))} … ` +
                `${unit(quantile(differences, 0.75))})`
          })
        ])
      const base =
        app === 'idle'
          ? `${bases.length} rounds. Nothing: ${mib(median(bases.map(({ rss }) => rss)))} MiB ` +
            `RSS, start ${median(bases.map(({ startedMs }) => startedMs)).toFixed(0)} ms.`
          : `${bases.length} rounds. Nothing: ` +
            `${median(bases.map(({ requestsPerSecond }) => requestsPerSecond)).toFixed(0)} ` +
              'requests a second, ' +
                `${median(bases.map(({ cpuMicrosPerRequest }) => cpuMicrosPerRequest)).toFixed(0)} µs CPU each, ${mib(median(bases.map(({ rss }) => rss)))} MiB RSS.`
      sections.push(
        `## Node ${node}, ` +
          `${{
 api: 'a JSON API', allocating: 'an API that allocates ' +
            'much', idle: 'an idle app'
}[app]}`,
        base,
        table(['with', ...columns.map(({ title }) => title)], rows)
      )
      const share = shares.find(share => share.node === node && share.app === app)
      if (share) {
        sections.push(
          `By a CPU profile of the app under load, memwatch takes ${percent(share.agent)} of ` +
            'the main thread\'s busy time, and Node\'s own observing of GCs ' +
              `${percent(share.observing)}, whoever observes them.`
        )
      }
    }
  }
  return sections.join('\n\n') + '\n'
}

module.exports = { overheadPage }
