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

/** Columns, each compared with the run without any tool in the same round. @type {Column[]} */
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

/** Explanation of the costs, measured by hand on Node 20 to 26. */
const WHY = `The table has the lowest and the highest median of all Node versions and apps. The
rest of this section explains the costs, measured by hand on Node 20 to 26.

### Memory of an idle app

After a major GC the agent holds 0.85 to 0.95 MiB of heap. When it is loaded, V8 also allocates other memory:

| memory | Node 20 | Node 22 | Node 24 | Node 26 |
| --- | --- | --- | --- | --- |
| heap: Node's own list of allowed flags | 0.16 MiB | 0.16 MiB | 0.16 MiB | 0.16 MiB |
| heap: the agent's code | 0.4 MiB | 0.4 MiB | 0.4 MiB | 0.4 MiB |
| a second semi-space, in an app that has hardly begun | 1 MiB | 1 MiB | 1 MiB | 1 MiB |
| file pages, as V8 compiles functions of Node | 4.5 MiB | | 3.5 MiB | |
| file pages without V8's optimizing compilers | 0.6 MiB | | 1.1 MiB | |
| anonymous, after four minutes (medians of four processes) | 1.9 MiB | 4.2 MiB | 4.8 MiB | 3.7 MiB |
| the same without scans of the memory map, and as one file | 2.7 MiB | 3.2 MiB | 4.7 MiB | 3.2 MiB |

An app that loads a few dozen modules needs the file pages and the semi-space anyway. All processes
of the same Node.js binary share the file pages. The anonymous memory is mostly new space and
malloc's arenas of V8's threads. V8 allocates both as soon as it compiles code and runs GCs.

### Memory under load

V8 doubles its semi-spaces when more memory survives than they can hold. A little more memory
beside the app's makes this step earlier. On Node 24 an observer of GCs with an empty callback raised 40 MiB to 45 MiB, as much as the agent does.

| JSON API, twenty clients | Node 20 | Node 24 |
| --- | --- | --- |
| new space after 100,000 requests, alone | 8 MiB | 8 MiB |
| new space after 100,000 requests, with the agent or an empty observer | 14 MiB | 14 MiB |
| new space after 400,000 requests, in each case | 14 MiB | 14 MiB |
| anonymous memory added, 10,000 to 100,000 requests (three runs each) | 1.7 to 6.3 MiB | 7 to 14 MiB |
| anonymous memory added, 400,000 requests (one run) | 1.5 MiB | 9 MiB |

On Node 24 malloc's part differs by 4.6 MiB between runs without any tool.

### Start

The agent delays the start of an HTTP server by 3 ms: medians of 40 starts each with and without it, in turn, on Node 20 and
24. The CPU time is the same. In the rounds below, starts without any tool differ by more than that.

### The frame

The code of a frame runs cold. Three quarters of its time are in V8's builtins and Node's C++,
spread over about a hundred functions, none above a twentieth. A sixth of the time is in the kernel.

| main-thread time | µs |
| --- | --- |
| a frame, read back to back | 30 |
| seven calls like those of a frame, each alone once a second in a process without any agent, added up | 270 to 330 |
| a frame of GC counts alone, mostly to encode and send it, Node 22 to 26 | 110 to 120 |
| the same, Node 20 | 170 |
| a frame of the agent, five apps | 325 to 467 |
| the same apps, with all values in every third frame only: Node 22 | 181 to 335 |
| the same: Node 24 | 182 to 245 |
| the same: Node 20 | 223 to 287 |
| a frame with 3,800 GCs a second, Node 24 | 620 |
| the same, with all values in every third frame only | 490 |

Functions that V8 compiled after thousands of runs take a quarter less. The agent reads memory in
each frame, so that an app killed for memory has values of its last second. See [growth](growth.md).

### GCs

In an API with fifty GCs a second, most of the agent's cost is Node's own work for each observed GC. By samples of CPU time
that work takes 0.3 to 0.5 %, and the agent itself 0.1 to 0.2 %. The profiles below measure wall time, which includes other
load on the machine. Node 20 defines two deprecated properties on each entry. Every observer of GCs has this cost; the agent
observes GCs only where it cannot use V8's own callbacks.

### Throughput

Two processes differ by more than the agent's cost, so rounds do not show it. Alternating periods
of two seconds do not show it either. The table has such periods of the JSON API on Node 24 under
full load:

| fewer requests, medians and range | four processes at a time, 24 turns | three processes, 32 turns |
| --- | --- | --- |
| with the agent | 2.6 % (−2.6 to 9.9) | 4.2 % (0.8 to 8.7) |
| with an empty observer of GCs | 4.0 % (1.5 to 9.8) | |
| with nothing again | 0.8 % (−5.3 to 5.5) | −2.6 % (−4.4 to 2.8) |

The agent costs as much as the empty observer, within the noise. Observing GCs probably costs more
than half a percent in this app; the profiles below agree.`

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
      'The same app ran without any tool ("nothing") and with each tool of the tables. A line ' +
      'shows the median of the differences to "nothing" in the same round, with the quartiles in ' +
      'brackets. Rounds alternate, on a machine with two cores that load and app share. memwatch, ' +
      'prom-client and OpenTelemetry report each second, dd-trace every ten. The line "nothing, ' +
      'again" shows the noise: smaller differences are noise, and the CPU profiles show the ' +
      'cost instead. ' +
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
          ? `${bases.length} rounds. Without any tool: ${mib(median(bases.map(({ rss }) => rss)))} MiB ` +
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
            'the main thread\'s busy time. Node\'s own work for an observer of GCs, of any tool, takes ' +
              `${percent(share.observing)}.`
        )
      }
    }
  }
  return sections.join('\n\n') + '\n'
}

module.exports = { overheadPage }
