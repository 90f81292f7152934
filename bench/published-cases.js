'use strict'

/**
 * Results published by others, and the lab apps with which the bench measures them again.
 *
 * @typedef {object} Case
 * @property {string} id
 * @property {string} title
 * @property {string} claim published claim
 * @property {string} app app of the lab that is modelled on it
 * @property {string} model how
 * @property {string} remark statement of the figures
 * @property {number} memoryMb memory of the container in MB
 * @property {number} seconds duration of a run
 * @property {number} fromNode
 * @property {Omit<Variant, 'id' | 'against'>} [byTry] options of `memwatch try`, which runs before
 *   and after in turns
 * @property {Variant[]} variants variants run in turns by `memwatch simulate`, after the runs of
 *   `memwatch try`
 *
 * @typedef {object} Variant
 * @property {string} id folder of its runs
 * @property {string} title
 * @property {string} [against] folder of the runs to compare with; absent: this is the reference of
 *   others
 * @property {string[]} [args] of memwatch simulate
 * @property {Record<string, string>} [env]
 * @property {Claim[]} claims
 *
 * @typedef {object} Claim
 * @property {import('../cli/comparison/figures').FigureName} figure
 * @property {string} published value as published; '' without one
 * @property {number} [changeRatio] -0.31 for -31 %
 * @property {number} [before] value before, in base units
 * @property {number} [after]
 * @property {number} [atMost] value after, if published as a bound
 */

const MB = 2 ** 20

/** @type {Claim[]} */
const semiSpaces = [
  { figure: 'newSpaceBytes', published: '1–2 MB → 16 or 32 MB', before: 2 * MB, after: 32 * MB },
  { figure: 'cpuPerRequestSeconds', published: 'less' },
  { figure: 'gcPausePerRequestSeconds', published: 'less' },
  { figure: 'scavengesPerSecond', published: '' },
  { figure: 'ordinaryMajorsPerSecond', published: '' },
  { figure: 'delayP99Seconds', published: '' },
  { figure: 'peakRssBytes', published: '' }
]

/** @type {Claim[]} */
const jemalloc = [
  { figure: 'peakRssBytes', published: '−31 %', changeRatio: -0.31 },
  { figure: 'rssAfterLoadBytes', published: '−28 %', changeRatio: -0.28 },
  { figure: 'medianRssBytes', published: '' },
  { figure: 'cpuSeconds', published: '' }
]

/** @type {ReadonlyArray<Case>} */
const cases = [
  {
    id: 'jemalloc',
    title: 'jemalloc in a container of 512 MB',
    claim: 'Peak RSS falls by 31 %, RSS after load by 28 %.',
    app: 'allocator-fragmentation',
    model:
      'The app handles batches of Buffers of many sizes in the thread pool, beside a live heap of ' +
        '90 MB, with ten quiet seconds between batches.',
    remark:
      'The published reduction after load is that of jemalloc with default settings: without a ' +
        'background thread jemalloc returns memory only while the app allocates. With a ' +
        'background thread jemalloc returns about twice as much after load. The peaks differ ' +
        'little.',
    memoryMb: 512,
    seconds: 60,
    fromNode: 20,
    byTry: {
      title: 'what memwatch recommends: jemalloc with a background thread',
      claims: jemalloc
    },
    variants: [
      {
        id: 'plain',
        title: 'jemalloc with its default settings',
        against: 'try/before',
        env: { LD_PRELOAD: 'libjemalloc.so.2' },
        claims: jemalloc
      }
    ]
  },
  {
    id: 'semi-space',
    title: 'The new space of Node.js ≥ 20 in a container of 512 MB',
    claim:
      'Semi-spaces of 1 to 2 MB grow to 16 (a new space of 32) with `--max-semi-space-size=16`, ' +
        'and GC takes less CPU.',
    app: 'semi-space-starvation',
    model: 'The app is a JSON API at a fixed rate, with up to 64 requests in flight.',
    remark:
      'Other work of the machine affects rates and delays. The cost per request is affected ' +
      'less. The new ' +
        "space is the sum of both semi-spaces, as in V8's statistics. A larger new space costs " +
        'memory: see peak RSS.',
    memoryMb: 512,
    seconds: 30,
    fromNode: 20,
    byTry: {
      title: 'what memwatch recommends',
      claims: semiSpaces.map(claim =>
        claim.figure === 'newSpaceBytes' ? { figure: claim.figure, published: '' } : claim
      )
    },
    variants: [
      {
        id: 'semi-16',
        title: '`--max-semi-space-size=16`, as published',
        against: 'try/before',
        args: ['--node-option=--max-semi-space-size=16'],
        claims: semiSpaces
      }
    ]
  },
  {
    id: 'buffers',
    title: 'Buffers in a container of 300 MB',
    claim:
      'RSS rises by 101 MB, with 1,335 GC events. If the app releases each Buffer, RSS rises by ' +
        '0.5 MB, with at most 3 GC events.',
    app: 'array-buffer-pile-up-transfer',
    model:
      'The app allocates five Buffers of 50 MB a second, for 45 s. The number of Buffers in the ' +
        'published run is unknown.',
    remark:
      'The number of GC events follows the number of Buffers, here 225 a run. A thousand Buffers ' +
        'would give about the published number. With release, the remaining GC events are those ' +
        'at the start of Node and of the agent. Node 20 has no `transfer`, so one reused Buffer ' +
        'stays in memory. RSS is read once a second, between two Buffers. A Buffer in use adds ' +
        '50 MB: the kernel counted a peak of 111 to 118 MB with release, and 162 to 222 MB ' +
        'without (Node 22, 24).',
    memoryMb: 300,
    seconds: 45,
    fromNode: 20,
    variants: [
      { id: 'kept', title: 'without release', claims: [] },
      {
        id: 'released',
        title:
          'each Buffer released at once by `transfer(0)` (Node 22 and later), or one Buffer reused',
        against: 'kept',
        args: ['--fixed'],
        claims: [
          {
            figure: 'rssRiseBytes',
            published: '+101 MB → +0.5 MB',
            before: 101 * MB,
            after: 0.5 * MB
          },
          { figure: 'gcEvents', published: '1,335 → at most 3', before: 1335, atMost: 3 },
          { figure: 'gcPauseSeconds', published: '' },
          { figure: 'peakRssBytes', published: '' },
          { figure: 'cpuSeconds', published: '' }
        ]
      }
    ]
  }
]

module.exports = { cases }
