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
    title: 'turns of the event loop a second',
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
    title: 'anonymous memory, MiB',
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

After a major GC the agent holds 0.85 to 0.95 MiB of heap. Loading the agent also makes V8 allocate other memory:

| memory | Node 20 | Node 22 | Node 24 | Node 26 |
| --- | --- | --- | --- | --- |
| heap: Node's own list of allowed flags | 0.16 MiB | 0.16 MiB | 0.16 MiB | 0.16 MiB |
| heap: the agent's code | 0.4 MiB | 0.4 MiB | 0.4 MiB | 0.4 MiB |
| a second semi-space, in an app that has just started | 1 MiB | 1 MiB | 1 MiB | 1 MiB |
| file pages of V8's compilers, for functions of Node | 4.5 MiB | | 3.5 MiB | |
| file pages without V8's optimizing compilers | 0.6 MiB | | 1.1 MiB | |
| anonymous memory after four minutes (median of four processes) | 1.9 MiB | 4.2 MiB | 4.8 MiB | 3.7 MiB |
| the same, without scans, with the agent in one file | 2.7 MiB | 3.2 MiB | 4.7 MiB | 3.2 MiB |

An app that loads a few dozen modules needs the file pages and the semi-space anyway. All processes
of the same Node.js binary share the file pages. The anonymous memory is mostly new space and
malloc's arenas of V8's threads. V8 allocates both as soon as it compiles code and runs GCs.

### Memory under load

V8 doubles its semi-spaces when more memory survives than they can hold. With a little memory of the agent on top, the step comes earlier. On Node 24 an observer of GCs with an empty callback raised the memory from 40 MiB to 45 MiB, as the agent does.

| JSON API, twenty clients | Node 20 | Node 24 |
| --- | --- | --- |
| new space after 100,000 requests, alone | 8 MiB | 8 MiB |
| new space after 100,000 requests, with the agent or an empty observer | 14 MiB | 14 MiB |
| new space after 400,000 requests, in each case | 14 MiB | 14 MiB |
| anonymous memory added, 10,000 to 100,000 requests (three runs each) | 1.7 to 6.3 MiB | 7 to 14 MiB |
| anonymous memory added, 400,000 requests (one run) | 1.5 MiB | 9 MiB |

On Node 24 malloc's part differs by 4.6 MiB between runs without any tool.

### Start

The agent delays the start of an HTTP server by 3 ms on Node 20 and 24. This is the difference of two medians of 40 starts, in alternating order. The CPU time is the same. In the rounds below, starts without any tool differ by more than that.

### The frame

The code of a frame runs so rarely that the CPU caches do not hold it. It spends three quarters of its time in V8's builtins and Node's C++: in about a hundred functions, each below a twentieth. A sixth of the time is in the kernel.

| main-thread time | µs |
| --- | --- |
| a frame, when frames follow each other at once | 30 |
| sum of seven calls like those of a frame, each once a second in a process of its own without an agent | 270 to 330 |
| a frame with GC counts only (mostly encoding and sending), Node 22 to 26 | 110 to 120 |
| the same, Node 20 | 170 |
| a frame of the agent, five apps | 325 to 467 |
| the same apps, all values only in every third frame: Node 22 | 181 to 335 |
| the same: Node 24 | 182 to 245 |
| the same: Node 20 | 223 to 287 |
| a frame with 3,800 GCs a second, Node 24 | 620 |
| the same, all values only in every third frame | 490 |

Functions that V8 has optimised after thousands of runs take a quarter less. The agent reads memory in each frame: after a kill for memory the values of the last second are known. See [growth](growth.md).

### GCs

In an API with fifty GCs a second, most of the agent's cost is Node's own work for each observed GC. This work takes 0.3 to 0.5 % of the CPU time, and the agent itself 0.1 to 0.2 %. The profiles below measure wall time, which includes other
load on the machine. Node 20 defines two deprecated properties on each entry. Every observer of GCs has this cost; the agent
observes GCs only where it cannot use V8's own callbacks.

### Throughput

Two processes without any tool differ by more than the agent's cost, so neither rounds nor alternating periods of two seconds show this cost. The table has such periods of the JSON API on Node 24 under full load:

| lost requests, median and range | four processes, 24 periods each | three processes, 32 periods each |
| --- | --- | --- |
| with the agent | 2.6 % (−2.6 to 9.9) | 4.2 % (0.8 to 8.7) |
| with an empty observer of GCs | 4.0 % (1.5 to 9.8) | |
| nothing, again | 0.8 % (−5.3 to 5.5) | −2.6 % (−4.4 to 2.8) |

Within the noise the agent costs as much as the empty observer. Observing GCs probably costs more
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
 * Builds docs/overhead.md: medians of the differences to "nothing" of the same round, with their
 * quartiles.
 * @param {any[]} runs see overhead.js
 * @param {any[]} shares see overhead.js
 * @returns {string}
 */
function overheadPage (runs, shares) {
  const sections = [
    '# Cost for the app',
    '<!-- Written by npm run bench:overhead -- --write; do not edit. -->\n' +
      'The same app ran without any tool ("nothing") and with each tool of the tables. A row ' +
      'shows the difference to "nothing" in the same round: the median of all rounds, with the ' +
      'quartiles in brackets. In each round all variants ran, on a machine with two cores that ' +
      'app and load shared. memwatch, ' +
      'prom-client and OpenTelemetry report each second, dd-trace every ten. The row "nothing, ' +
      'again" shows the noise. For differences smaller than the noise, read the CPU profiles ' +
      'instead. ' +
      'In an app that allocates much, the heap of V8 may reach one of two stable sizes. The ' +
      'quartiles are then far apart, and the median says little.'
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
          'According to a CPU profile of the app under load, memwatch takes ' +
          `${percent(share.agent)} of ` +
            'the main thread\'s busy time. Node\'s own work for the observer of GCs, which any ' +
            'such tool causes, takes ' +
              `${percent(share.observing)}.`
        )
      }
    }
  }
  return sections.join('\n\n') + '\n'
}

module.exports = { overheadPage }
