'use strict'

const { readMemory } = require('../../engine/text/quantity')
const {
  readNodeVersion,
  has,
  SEES_CGROUP_V2,
  V8_OF_NODE
} = require('../../engine/v8/node-versions')
const { takesInNodeOptions } = require('../../engine/v8/node-options')
const { sizesUnderFlags } = require('../../engine/v8/sizes-under-flags')
const { readPlanArguments } = require('../../exporter/expose/plan-request')
const { plan } = require('../../engine/v8/plan')
const { render } = require('../../cli/plan')
const { startExporter, eventually } = require('../support/exporter')
const { memwatch } = require('../support/memwatch')
const { hello, frame, line, MIB } = require('../support/frames')
const { defined } = require('../support/defined')

const GIB = 1024 * MIB

describe('an amount of memory', () => {
  it.each([
    ['512Mi', 512 * MIB],
    ['512MiB', 512 * MIB],
    [' 512Mi ', 512 * MIB],
    ['1Gi', GIB],
    ['1.5Gi', 1.5 * GIB],
    ['536870912', 512 * MIB],
    ['512M', 512e6],
    ['2G', 2e9],
    ['1024Ki', MIB],
    ['2000k', 2e6],
    ['1Mi', MIB],
    ['1048576', MIB],
    ['1024Ti', 2 ** 50],
    ['0.5Gi', 512 * MIB]
  ])('%s', (text, bytes) => {
    expect(readMemory(text)).toBe(bytes)
  })
  it.each([
    ['', 'such as 512Mi'],
    ['much', 'such as 512Mi'],
    ['-512Mi', 'such as 512Mi'],
    ['512 Mi', 'such as 512Mi'],
    ['512mi', 'such as 512Mi'],
    ['512MB', 'such as 512Mi'],
    ['512K', 'such as 512Mi'],
    ['1e9', 'such as 512Mi'],
    ['.5Gi', 'such as 512Mi'],
    ['Mi', 'such as 512Mi'],
    ['0x200', 'such as 512Mi'],
    ['Infinity', 'such as 512Mi'],
    ['512toString', 'such as 512Mi'],
    ['512', 'a number without a unit is bytes; write 512Mi'],
    ['1048575', 'a number without a unit is bytes'],
    ['512m', 'a MiB in Docker; write 512Mi'],
    ['1023Ki', 'from 1Mi'],
    ['0', 'a number without a unit is bytes'],
    ['1025Ti', 'to 1024Ti'],
    ['9999999999999999', 'to 1024Ti']
  ])('%j is invalid', (text, why) => {
    expect(() => readMemory(text)).toThrow(why)
  })
})

describe('a version of Node.js', () => {
  it.each([
    ['22', 22, undefined, 12, 4],
    ['v22', 22, undefined, 12, 4],
    ['20.20.2', 20, 20, 11, 3],
    ['v24.6', 24, 6, 13, 6],
    ['18', 18, undefined, 10, 2],
    ['26', 26, undefined, 14, 6]
  ])('%s', (text, major, minor, v8Major, v8Minor) => {
    expect(readNodeVersion(text)).toEqual({
      text: text.replace('v', ''),
      major,
      minor,
      v8Major,
      v8Minor
    })
  })
  it.each([
    ['17', 'expected Node.js 18 to 26, whose heap sizing is known, got "17"'],
    ['27', 'expected Node.js 18 to 26'],
    ['0', 'expected Node.js 18 to 26'],
    ['', 'such as 22, v22 or 22.23.3'],
    ['lts', 'such as 22'],
    ['22.x', 'such as 22'],
    ['22-alpine', 'such as 22'],
    ['22.1.2.3', 'such as 22'],
    ['22.1.2-rc.1', 'such as 22']
  ])('%j is invalid', (text, why) => {
    expect(() => readNodeVersion(text)).toThrow(why)
  })
  it.each([
    ['20.2.0', false],
    ['20.3.0', true],
    ['20', true],
    ['19', false],
    ['18.20.8', false],
    ['21.0.0', true]
  ])('%s sees limits of cgroup v2: %s', (text, sees) => {
    expect(has(readNodeVersion(text), SEES_CGROUP_V2)).toBe(sees)
  })
  it.each([
    ['22.20.0', '--max-old-space-size-percentage', false],
    ['22.21.0', '--max-old-space-size-percentage', true],
    ['23', '--max-old-space-size-percentage', false],
    ['24.5.0', '--max-old-space-size-percentage', false],
    ['24.6.0', '--max-old-space-size-percentage', true],
    ['22', '--max-heap-size', false],
    ['24.14.0', '--max-heap-size', false],
    ['24.15.0', '--max-heap-size', true],
    ['25.8.0', '--max-heap-size', false],
    ['25.9.0', '--max-heap-size', true],
    ['26', '--max-heap-size', true],
    ['18', '--max-semi-space-size', true],
    ['22', '--min-semi-space-size', false],
    ['18', '--expose-gc', false],
    ['20', '--expose-gc', true],
    ['23', '--experimental-permission', true],
    ['24', '--experimental-permission', false],
    ['22', '--no-experimental-fetch', true],
    ['24', '--no-experimental-fetch', false],
    ['22', '--no-huge-max-old-generation-size', true],
    ['24', '--no-huge-max-old-generation-size', false],
    ['24', '--no-warnings', true],
    ['24', '--unheard-of', false]
  ])('%s accepts %s in NODE_OPTIONS: %s', (text, flag, takes) => {
    expect(takesInNodeOptions(readNodeVersion(text), flag)).toBe(takes)
  })
})

/**
 * Measured in 1 GiB on Node 18 to 26 under flags, in MB: the heap size limit, and the semi-space,
 * by the growth of the new space.
 */
describe.each([
  [{ heapMb: 300 }, 300, [4, 4, 4, 4, 4, 4, 16, 16, 16]],
  [{ heapMb: 260 }, 260, [1, 1, 1, 1, 1, 1, 1, 1, 16]],
  [{ heapMb: 280 }, 280, [4, 4, 4, 4, 4, 4, 1, 1, 16]],
  [{ heapMb: 600 }, 600, [8, 8, 8, 8, 8, 8, 32, 32, 32]],
  [{ heapMb: 300, oldMb: 200 }, 392, Array(9).fill(64)],
  [{ heapMb: 300, semiMb: 8 }, 300, Array(9).fill(8)],
  [{ oldMb: 300, semiMb: 24 }, 396, Array(9).fill(32)]
])('V8 under %j', (flags, limitMb, semiMb) => {
  it.each(Object.entries(V8_OF_NODE).map(([node, v8], i) => [node, v8, semiMb[i]]))(
    'on Node %s (V8 %s)',
    (_, v8, semi) => {
      const [v8Major, v8Minor] = v8.split('.').map(Number)
      expect(sizesUnderFlags(v8Major, v8Minor, GIB, flags)).toEqual({
        heapSizeLimitBytes: limitMb * MIB,
        semiSpaceBytes: semi * MIB,
        oldBytes: (limitMb - 3 * semi) * MIB
      })
    }
  )
})

it('--max-heap-size below the size of the old generation leads to the smallest semi-space', () => {
  expect(sizesUnderFlags(12, 4, GIB, { heapMb: 300, oldMb: 512 })).toMatchObject({
    heapSizeLimitBytes: 515 * MIB
  })
  expect(sizesUnderFlags(14, 6, GIB, { heapMb: 300, oldMb: 512 })).toMatchObject({
    heapSizeLimitBytes: 513.5 * MIB
  })
})

/**
 * @param {string} node
 * @param {string} memory
 * @param {string} [flags]
 * @param {object} [more]
 */
const rowsOf = (node, memory, flags = '', { hostMemory = '16Gi', cgroup = 'v2' } = {}) => {
  const { nodeOptions, ...asked } = readPlanArguments({
    node: [node],
    memory: memory ? [memory] : undefined,
    flags,
    hostMemory
  })
  return plan({ ...asked, cgroup, flags: { nodeOptions, execArgv: [] } })
}
/** Container limit, heap size limit and semi-space of each row, in MiB. */
const figures = rows =>
  rows.map(({ node, memoryLimitBytes, heapSizeLimitBytes, semiSpaceBytes }) => [
    node,
    memoryLimitBytes && memoryLimitBytes / MIB,
    heapSizeLimitBytes / MIB,
    semiSpaceBytes / MIB
  ])
const warningsIn = (/** @type {Parameters<typeof rowsOf>} */ ...asked) => defined(rowsOf(...asked).at(-1)).warnings.join('\n')

describe('a plan', () => {
  it('has a row for each version under each limit', () => {
    expect(figures(rowsOf('20,24,26', '512Mi,513Mi'))).toEqual([
      ['20', 512, 259, 1],
      ['24', 512, 259, 1],
      ['26', 512, 268, 4],
      ['20', 513, 268.5, 4],
      ['24', 513, 304.5, 16],
      ['26', 513, 280.5, 8]
    ])
    expect(rowsOf('24', '1Gi')).toEqual([
      {
        node: '24',
        memoryLimitBytes: GIB,
        heapSizeLimitBytes: 560 * MIB,
        oldGenerationBytes: 512 * MIB,
        semiSpaceBytes: 16 * MIB,
        newSpaceBytes: 32 * MIB,
        flags: '',
        running: false,
        warnings: []
      }
    ])
  })
  it.each([
    ['--max-old-space-size=64', '--max-semi-space-size=16 prevents it'],
    ['--max-old-space-size=120 --max-semi-space-size=64', '--max-semi-space-size=16 prevents it'],
    ['--max-old-space-size=24 --max-semi-space-size=16', '--max-semi-space-size=4 prevents it'],
    ['--max-old-space-size=64 --max-semi-space-size=16', null],
    ['--max-old-space-size=512', null]
  ])('warns of semi-spaces that leave too little of the old generation: %s', (flags, advice) => {
    const told = warningsIn('24', '8Gi', flags)
    expect(told.includes('may mark the heap all the time')).toBe(advice !== null)
    expect(told).toContain(advice ?? '')
  })
  it('uses the memory of the machine if there is no limit', () => {
    expect(figures(rowsOf('20,22', '', '', { hostMemory: '15500Mi' }))).toEqual([
      ['20', null, 2096, 16],
      ['22', null, 4144, 16]
    ])
    expect(figures(rowsOf('22', '64Gi', '', { hostMemory: '4Gi' }))).toEqual([
      ['22', 65536, 2096, 16]
    ])
    expect(warningsIn('22', '64Gi', '', { hostMemory: '4Gi' })).toContain(
      "The machine has less memory than the limit: V8 uses the machine's 4096 MiB."
    )
  })
  it('rounds a limit to whole pages, as the kernel does', () => {
    expect(
      figures(rowsOf('24', '536870913,536875007,536875008')).map(([, , heap]) => heap)
    ).toEqual([259, 259, 304.25])
  })
  it('names versions that see no limit of cgroup v2, and their sizes on v1', () => {
    expect(figures(rowsOf('18,20.2.0,20.3.0', '512Mi'))).toEqual([
      ['18', 512, 4144, 16],
      ['20.2.0', 512, 4144, 16],
      ['20.3.0', 512, 259, 1]
    ])
    expect(rowsOf('18', '512Mi')[0].warnings).toContain(
      "Node 18 sees no memory limit on cgroup v2: V8 uses the machine's 16384 MiB. On cgroup " +
        'v1 it sees the limit: heap size limit 259 MiB, semi-space 1 MiB.'
    )
    expect(figures(rowsOf('18', '512Mi', '', { cgroup: 'v1' }))).toEqual([['18', 512, 259, 1]])
  })
  it('says that it assumes this machine if none is named', () => {
    const { nodeOptions, ...asked } = readPlanArguments(
      { node: ['18,22'], memory: ['512Mi'] },
      { machineBytes: 8 * GIB }
    )
    const [row18, row22] = plan({ ...asked, cgroup: 'v2', flags: { nodeOptions, execArgv: [] } })
    expect([row18.heapSizeLimitBytes, row18.warnings.at(-1)]).toEqual([
      2096 * MIB,
      expect.stringContaining('memory of this machine')
    ])
    expect(row22.warnings.join()).not.toContain('this machine')
  })
})

describe('a plan warns', () => {
  it('of the changes by an upgrade', () => {
    expect(rowsOf('18,24', '512Mi')[1].warnings.slice(0, 2)).toEqual([
      '18 → 24 at 512 MiB: semi-space 16 → 1 MiB; add --max-semi-space-size=16.',
      '18 → 24 at 512 MiB: heap size limit 4144 → 259 MiB: a live heap of more than 256 MiB ' +
        'ends the app (heap out of memory, exit 134).'
    ])
    expect(rowsOf('20,24', '2Gi')[1].warnings).toEqual([
      '20 → 24 at 2048 MiB: semi-space 8 → 32 MiB: the new space may take 64 MiB of RSS, 48 MiB ' +
        'more.'
    ])
    expect(rowsOf('24,26', '4Gi')[1].warnings).toEqual([
      '24 → 26 at 4096 MiB: semi-space 64 → 32 MiB.'
    ])
    expect(rowsOf('20,22', '1Gi')[1].warnings.join()).not.toContain('→')
    expect(rowsOf('24,20', '2Gi')[1].warnings).toEqual([
      '24 → 20 at 2048 MiB: semi-space 32 → 8 MiB; add --max-semi-space-size=16.'
    ])
  })
  it('with one size of semi-spaces, not two', () => {
    for (const [node, memory] of [
      ['20', '1Gi,512Mi'],
      ['18,24', '256Mi'],
      ['24,20', '1Gi'],
      ['18,22', '128Mi']
    ]) {
      const { warnings } = defined(rowsOf(node, memory).at(-1))
      const sizes = warnings.flatMap(text =>
        [...text.matchAll(/--max-semi-space-size=(\d+)/g)].map(([, size]) => size)
      )
      expect([node, memory, new Set(sizes).size, sizes.length > 1]).toEqual([node, memory, 1, true])
    }
  })
  it('of the changes by another limit', () => {
    expect(rowsOf('24', '1Gi,512Mi')[1].warnings.slice(0, 2)).toEqual([
      '24 at 1024 MiB → 24 at 512 MiB: semi-space 16 → 1 MiB; add --max-semi-space-size=16.',
      '24 at 1024 MiB → 24 at 512 MiB: heap size limit 560 → 259 MiB: a live heap of more than ' +
        '256 MiB ends the app (heap out of memory, exit 134).'
    ])
  })
  it.each([
    [
      '20',
      '256Mi',
      /grow the heap to 259 MiB, but the container's limit is 256 MiB: a leak ends as a kill by the kernel \(exit 137\).*--max-old-space-size=160 --max-semi-space-size=8 leaves 48 MiB/
    ],
    [
      '24',
      '300Mi',
      /259 MiB, 48 MiB lie beside it, but the container's limit is 300 MiB: a leak may end/
    ],
    ['24', '306Mi', /may end as a kill/],
    ['24', '307Mi', null],
    ['18', '512Mi', /grow the heap to 4144 MiB.*--max-old-space-size=368 leaves/],
    ['22', '64Mi', /No useful heap fits beside 48 MiB of other memory/],
    ['26', '512Mi', null]
  ])('on %s at %s of a heap that may outgrow its container: %s', (node, memory, expected) => {
    const warnings = warningsIn(node, memory)
    if (expected) expect(warnings).toMatch(expected)
    else expect(warnings).not.toContain('kill by the kernel')
  })
  it.each([
    ['24', '512Mi', 1, 16],
    ['26', '512Mi', 4, 16],
    ['24', '256Mi', 1, 8],
    ['20', '1Gi', 4, 16],
    ['20', '2Gi', 8, null],
    ['24', '513Mi', 16, null],
    ['24', '64Mi', 1, 2],
    ['24', '60Mi', 1, 2],
    ['24', '59Mi', 1, null]
  ])('on %s at %s of semi-spaces of %i MiB: try %s', (node, memory, semi, wanted) => {
    const [row] = rowsOf(node, memory)
    expect(row.semiSpaceBytes).toBe(semi * MIB)
    expect(
      row.warnings
        .find(text => text.startsWith('Semi-spaces of at most'))
        ?.match(/--max-semi-space-size=(\d+)/)?.[1] ?? null
    ).toBe(wanted && String(wanted))
  })
  it('if 1 MiB more would change much', () => {
    expect(warningsIn('24', '512Mi')).toContain(
      '512 MiB is the worst limit: with 1 MiB more V8 would choose a semi-space of 16 MiB.'
    )
    for (const memory of ['511Mi', '513Mi', '1Gi']) {
      expect(warningsIn('24', memory)).not.toContain('worst')
    }
    expect(warningsIn('26', '512Mi')).not.toContain('worst')
  })
  it.each([
    [
      '22',
      '--max-old-space-size=384',
      387,
      /An old generation of 384 MiB does not change the young generation: with semi-spaces of 1 MiB.* heap size limit is 387 MiB/
    ],
    ['22', '--max_old_space_size=384 --max-semi-space-size=16', 432, null],
    [
      '22',
      '--max-semi-space-size=24',
      352,
      /--max-semi-space-size=24 is rounded up to a power of two: 32 MiB/
    ],
    ['22', '--max-semi-space-size=32', 352, null],
    [
      '24',
      '--max-heap-size=300',
      300,
      /--max-heap-size=300 limits both generations: semi-spaces of 16 MiB, and 252 MiB for the old generation/
    ],
    [
      '24',
      '--max-heap-size=300 --max-old-space-size=200',
      392,
      /leaves 100 MiB for the young generation. V8 chooses semi-spaces of 64 MiB, and the heap size limit becomes 392 MiB/
    ],
    [
      '22',
      '--max-heap-size=300',
      300,
      /Node 22 does not accept --max-heap-size in NODE_OPTIONS and would not start. The numbers are for the command line/
    ],
    [
      '24',
      '--max-heap-size=300 --max-old-space-size=200 --max-semi-space-size=8',
      224,
      /V8 ends at start with .* together/
    ],
    [
      '22',
      '--max-old-space-size-percentage=75',
      387,
      /--max-old-space-size-percentage=75 is of the 512 MiB that Node.js sees, so the old generation has 384 MiB/
    ],
    [
      '22',
      '--max-old-space-size-percentage=75 --max-old-space-size=100',
      387,
      /--max-old-space-size does not count beside it/
    ],
    [
      '20',
      '--max-old-space-size-percentage=75',
      259,
      /Node 20 does not know --max-old-space-size-percentage and would not start/
    ],
    ['22', '--max-old-space-size-percentage=100', 515, null],
    [
      '22',
      '--max-old-space-size-percentage=101',
      259,
      /needs a number above 0 and up to 100, not "101": Node 22 would not start/
    ],
    ['22', '--max-old-space-size-percentage=0', 259, /above 0/],
    ['22', '--max-old-space-size=0', 259, null],
    [
      '22',
      '--max-old-space-size=1.5',
      259,
      /--max-old-space-size needs whole MB after =, not "1.5": Node 22 would not start/
    ],
    ['22', '--max-old-space-size 384', 259, /needs whole MB after =/],
    ['22', '--max-old-space-size=100 --max-old-space-size=200', 203, null],
    [
      '22',
      '--optimize-for-size --max-semi-space-size=16',
      259,
      /does not accept --optimize-for-size in NODE_OPTIONS/
    ],
    [
      '24',
      '--experimental-permission',
      259,
      /Node 24 does not accept --experimental-permission in NODE_OPTIONS and would not start\.$/m
    ],
    ['23', '--experimental-permission', 259, null],
    ['22', '--minor-ms', 259, /The numbers ignore unknown flags: --minor-ms/],
    ['22', '--require "./my agent.js" --enable-source-maps', 259, null]
  ])('on Node %s with %s', (node, flags, limitMb, expected) => {
    const [row] = rowsOf(node, '512Mi', flags)
    expect(row.heapSizeLimitBytes).toBe(limitMb * MIB)
    const about = row.warnings
      .filter(text =>
        /--(?!max-semi-space-size=16 costs|max-old-space-size=\d+ leaves|max-old-space-size=\d+ --max-semi)|generation/.test(
          text
        )
      )
      .join('\n')
    if (expected) expect(about).toMatch(expected)
    else expect(about).not.toMatch(/does not start|rounded|Not known|holds both/)
  })
})

describe('invalid arguments', () => {
  it.each([
    [{ node: ['22'], memory: ['512'] }, 'memory', 'a number without a unit is bytes'],
    [{ node: ['22,16'], memory: ['1Gi'] }, 'node', '16'],
    [{ node: ['22,'], memory: ['1Gi'] }, 'node', 'such as'],
    [{ memory: ['1Gi'] }, 'node', 'such as 20,24'],
    [{ node: ['22'] }, 'memory', 'such as 512Mi'],
    [{ node: ['22'], memory: ['1Gi'], hostMemory: 'big' }, 'hostMemory', 'such as 512Mi'],
    [{ node: ['22'], memory: ['1Gi'], cgroup: '2' }, 'cgroup', 'v1 or v2'],
    [{ node: ['22'], memory: ['1Gi'], flags: 'server.js' }, 'flags', 'got "server.js"'],
    [{ node: ['22'], memory: ['1Gi'], flags: '--max-old-space-size=1 2' }, 'flags', 'got "2"'],
    [{ node: ['22'], memory: ['1Gi'], flags: '-'.repeat(4097) }, 'flags', '4096'],
    [{ node: Array(21).fill('22'), memory: ['1Gi'] }, 'node', 'at most 20']
  ])('%j: %s', (given, argument, why) => {
    expect(() => readPlanArguments(given)).toThrow(
      expect.objectContaining({ argument, message: expect.stringContaining(why) })
    )
  })
  it('are limited to 20 of a kind, and to 4096 characters of flags', () => {
    expect(
      readPlanArguments({ node: Array(20).fill('22'), memory: ['1Gi'], flags: '-'.repeat(4096) })
        .versions
    ).toHaveLength(20)
  })
})

describe('of a running target', () => {
  let exporter
  beforeEach(async () => { exporter = await startExporter() })
  afterEach(() => exporter.stop())
  const VALUES = {
    rssBytes: 300 * MIB,
    heapUsedBytes: 200 * MIB,
    heapTotalBytes: 210 * MIB,
    heapPhysicalBytes: 205 * MIB,
    heapSizeLimitBytes: 259 * MIB,
    containerLimitBytes: 512 * MIB,
    containerUsageBytes: 310 * MIB
  }
  /**
   * @param {object} changes of the hello
   * @param {object} [values]
   */
  async function say (changes, values = {}) {
    const connection = await exporter.connect()
    connection.write(
      [
        line(hello(changes)),
        ...[1, 2].map(sequence =>
          line(frame({ sequence, uptimeSeconds: sequence, values: { ...VALUES, ...values } }))
        )
      ].join('\n') + '\n'
    )
    await eventually(() => exporter.exporter.state.frames, frames => frames === 2)
  }
  const get = async query => (await exporter.get(`/api/v1/plan?${query}`)).json()

  it('starts with the reported sizes, and checks them against its current memory', async () => {
    await say({}, { liveHeapBytes: 180 * MIB, liveHeapMajors: 3 })
    const [now, ...rows] = await get('target=api&memory=256Mi&node=24')
    expect(now).toMatchObject({
      node: '20.20.2',
      memoryLimitBytes: 512 * MIB,
      heapSizeLimitBytes: 259 * MIB,
      oldGenerationBytes: 256 * MIB,
      semiSpaceBytes: MIB,
      running: true
    })
    expect(rows).toEqual([
      expect.objectContaining({
        node: '24',
        memoryLimitBytes: 256 * MIB,
        heapSizeLimitBytes: 259 * MIB,
        running: false
      })
    ])
    expect(rows[0].warnings[0]).toMatch(
      /^A live heap of 180 MiB and \d+(\.\d)? MiB outside it are more than the 256 MiB of the container: the kernel kills the app \(exit 137\)\. A container of \d+ MiB is enough, with --max-old-space-size=288\.$/
    )
    expect(rows[0].warnings[1]).toMatch(
      /No useful heap fits beside \d+(\.\d)? MiB of other memory: request more memory\.$/
    )
  })
  it.each([
    [
      '--max-old-space-size=128',
      /^The live heap is 180 MiB, the old generation may hold 128 MiB: the app ends with heap out of memory \(exit 134\)\. --max-old-space-size=288 is enough\.$/
    ],
    [
      '--max-old-space-size=224',
      /^The live heap is 180 MiB, the old generation may hold 224 MiB: V8 would run GCs nearly all the time/
    ],
    ['--max-old-space-size=225', null]
  ])('with %s', async (flags, expected) => {
    await say({}, { liveHeapBytes: 180 * MIB, liveHeapMajors: 3 })
    const [, row] = await get(`target=api&flags=${flags}`)
    expect(row).toMatchObject({ node: '20.20.2', memoryLimitBytes: 512 * MIB, flags })
    const [first] = row.warnings
    if (expected) expect(first).toMatch(expected)
    else expect(first).not.toContain('live heap is')
  })
  it('has one row for its current setting, and defaults to its own flags', async () => {
    await say({ nodeOptions: ['--max-semi-space-size=16'] }, { heapSizeLimitBytes: 304 * MIB })
    expect(await get('target=api')).toHaveLength(1)
    expect(await get('target=api&node=20&memory=512Mi')).toHaveLength(1)
    expect(figures(await get('target=api&node=22'))).toEqual([
      ['20.20.2', 512, 304, 16],
      ['22', 512, 304, 16]
    ])
    expect((await get('target=api&node=22'))[1].warnings[0]).toContain('No major GC has run yet')
  })
  it('reports a heap size limit that the rules do not explain', async () => {
    await say({}, { heapSizeLimitBytes: 700 * MIB })
    expect((await get('target=api'))[0].warnings.at(-1)).toBe(
      "By memwatch's rules the heap size limit would be 259 MiB: it has a cause that memwatch " +
        'does not model.'
    )
  })
  it('does not model pointer compression', async () => {
    await say({ pointerCompression: true })
    const [now, then] = await get('target=api&node=24')
    expect([now.semiSpaceBytes, now.oldGenerationBytes, now.newSpaceBytes]).toEqual([
      null,
      null,
      null
    ])
    expect([now.warnings.at(-1), then.warnings.at(-1)]).toEqual([
      expect.stringContaining('does not model'),
      expect.stringContaining('for a build without it')
    ])
  })
  it('treats a limit on a parent cgroup as invisible to Node.js', async () => {
    await say({ constrainedBytes: undefined }, { heapSizeLimitBytes: 4144 * MIB })
    const [, then] = await get('target=api&node=24')
    expect([then.heapSizeLimitBytes, then.warnings.join()]).toEqual([
      4288 * MIB,
      expect.stringContaining('parent of the process')
    ])
  })
  it('assumes cgroup v1 if Node 18 sees a limit', async () => {
    await say({ node: '18.20.8', v8: '10.2.154.26-node.39' })
    expect(figures(await get('target=api&memory=1Gi'))).toEqual([
      ['18.20.8', 512, 259, 1],
      ['18.20.8', 1024, 524, 4]
    ])
    expect(figures(await get('target=api&memory=1Gi&cgroup=v2')).at(-1)).toEqual([
      '18.20.8',
      1024,
      4144,
      16
    ])
  })
  it('names options in NODE_OPTIONS that the new Node refuses, and ignores preloads', async () => {
    await say(
      {
        nodeOptions: ['--experimental-permission', '--require', 'memwatch/agent'],
        execArgv: ['--max-heap-size=300', '--env-file=.env', '-r', './x.js']
      },
      { heapSizeLimitBytes: 300 * MIB }
    )
    const [now, then] = await get('target=api&node=24')
    expect(now.warnings.join()).not.toMatch(/does not start|Not known|not modelled/)
    expect([then.heapSizeLimitBytes, then.semiSpaceBytes, then.warnings[0]]).toEqual([
      300 * MIB,
      16 * MIB,
      'Node 24 does not accept --experimental-permission in NODE_OPTIONS and would not start.'
    ])
    expect(then.warnings.join()).not.toContain('Not known')
  })
  it('marks all but the reported sizes of an unknown Node.js as a guess', async () => {
    await say({ node: '27.1.0', v8: '15.2.1' })
    const [now, then] = await get('target=api&memory=1Gi')
    expect([now.warnings.join(), then.warnings.join()]).toEqual([
      expect.stringContaining('the process reported these numbers'),
      expect.stringContaining('the numbers are a guess')
    ])
  })
  it('memwatch plan gets the target from the exporter', async () => {
    await say({}, { liveHeapBytes: 180 * MIB, liveHeapMajors: 3 })
    const { code, stdout, stderr } = await memwatch([
      'plan',
      'api',
      '--memory',
      '256Mi',
      '--memory',
      '1Gi',
      '--json',
      '--url',
      exporter.url
    ])
    expect([code, stderr]).toEqual([0, ''])
    expect(JSON.parse(stdout)).toEqual(await get('target=api&memory=256Mi&memory=1Gi'))
    const text = (await memwatch(['plan', 'api', '--memory', '256Mi', '--url', exporter.url]))
      .stdout
    expect(text).toMatch(
      /^node +memory limit .*\n20\.20\.2 \(now\) +512 MiB +259 MiB.*\n20\.20\.2 +256 MiB/
    )
    expect(await memwatch(['plan', 'nobody', '--url', exporter.url])).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('known targets: api')
    })
  })
})

describe('the API', () => {
  let exporter
  beforeAll(async () => { exporter = await startExporter() })
  afterAll(() => exporter.stop())
  it('has the same rows as the command line', async () => {
    const { stdout } = await memwatch([
      'plan',
      '--node',
      '18,24',
      '--memory',
      '512Mi',
      '--memory',
      '1Gi',
      '--flags',
      '--max-old-space-size=384',
      '--host-memory',
      '8Gi',
      '--json'
    ])
    const response = await exporter.get(
      '/api/v1/plan?node=18,24&memory=512Mi&memory=1Gi&flags=--max-old-space-size%3D384&hostMemory=8Gi'
    )
    expect([response.status, await response.json()]).toEqual([200, JSON.parse(stdout)])
  })
  it.each([
    ['node=16&memory=1Gi', 409, 'not_plannable', 'node: expected Node.js 18 to 26'],
    ['node=22&memory=512', 409, 'not_plannable', 'memory: '],
    ['', 409, 'not_plannable', 'node: '],
    ['node=22&memory=1Gi&cgroup=v3', 400, 'bad_arguments', 'cgroup'],
    ['target=nobody', 404, 'unknown_target', 'known targets: none']
  ])('%s: %i %s', async (query, status, code, detail) => {
    const response = await exporter.get(`/api/v1/plan?${query}`)
    expect([response.status, response.headers.get('content-type'), await response.json()]).toEqual([
      status,
      expect.stringContaining('application/problem+json'),
      expect.objectContaining({ code, detail: expect.stringContaining(detail) })
    ])
  })
})

describe('memwatch plan', () => {
  it.each([
    [['--memory', '512Mi'], '--node: '],
    [['--node', '22'], '--memory: '],
    [['--node', '22', '--memory', '512'], '--memory: '],
    [['--node', '12', '--memory', '1Gi'], '--node: expected Node.js 18 to 26'],
    [['--node', '22', '--memory', '1Gi', '--host-memory', 'x'], '--host-memory: '],
    [['--node', '22', '--memory', '1Gi', '--flags', 'x'], '--flags: '],
    [['shop', '--memory', 'x'], '--memory: '],
    [['shop', '--url', 'http://127.0.0.1:9'], '--url: no exporter answers']
  ])('%j ends with 2 and names the option', async (args, message) => {
    expect(await memwatch(['plan', ...args])).toEqual({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining(`memwatch: ${message}`)
    })
  })
  it('prints a table and warnings within the width', () => {
    const text = render(rowsOf('18,24', '512Mi'), { width: 80 }).join('\n')
    const lines = text.split('\n')
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(80)
    expect(lines.slice(0, 6)).toEqual([
      'node  memory limit  heap limit  old generation  semi-space  new space',
      '18         512 MiB    4144 MiB        4096 MiB      16 MiB     32 MiB',
      '24         512 MiB     259 MiB         256 MiB       1 MiB      2 MiB',
      '',
      '18 at 512 MiB',
      expect.stringMatching(/^ {2}- V8 may grow the heap to 4144 MiB/)
    ])
    expect(render(rowsOf('24', '1Gi'), { width: 80 })).toHaveLength(2)
  })
})
