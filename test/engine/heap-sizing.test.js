'use strict'

const { chosenSizes, semiSpaceMax } = require('../../engine/v8/heap-sizing')
const { flagsInForce } = require('../../engine/v8/flags')
const { predictYoungGeneration } = require('../../engine/v8/young-generation')
const { hello, MIB } = require('../support/frames')

/**
 * Measured on Node 20, 22, 24, 25 and 26 in memory cgroups: size of the container, then semi-space
 * and heap size limit, all in MB.
 */
/** @type {[string, number, number, Record<string, [semiMb: number, heapMb: number]>][]} */
const MEASURED = [
  [
    '11.3',
    11,
    3,
    {
      128: [1, 259],
      300: [1, 259],
      512: [1, 259],
      513: [4, 268.5],
      1024: [4, 524],
      2048: [8, 1048],
      2049: [16, 1072.5],
      4096: [16, 2096],
      15360: [16, 2096],
      15871: [16, 2096],
      15872: [16, 4144]
    }
  ],
  [
    '12.4',
    12,
    4,
    { 512: [1, 259], 513: [4, 268.5], 4096: [16, 2096], 15359: [16, 2096], 15360: [16, 4144] }
  ],
  [
    '13.6',
    13,
    6,
    {
      128: [1, 259],
      300: [1, 259],
      512: [1, 259],
      513: [16, 304.5],
      1024: [16, 560],
      2048: [32, 1120],
      2049: [64, 1216.5],
      4096: [64, 2240],
      15359: [64, 2240],
      15360: [64, 4288]
    }
  ],
  [
    '14.6',
    14,
    6,
    {
      128: [2, 262],
      256: [2, 262],
      300: [4, 268],
      512: [4, 268],
      513: [8, 280.5],
      1024: [8, 536],
      2048: [16, 1072],
      2049: [32, 1120.5],
      4096: [32, 2144],
      15360: [32, 4192]
    }
  ]
]

describe.each(MEASURED)('the sizes that V8 %s chooses', (_, major, minor, cases) => {
  it.each(Object.entries(cases))('in %s MB', (limitMb, [semiMb, heapMb]) => {
    const { semiSpaceBytes, heapSizeLimitBytes } = chosenSizes(major, minor, Number(limitMb) * MIB)
    expect([semiSpaceBytes / MIB, heapSizeLimitBytes / MIB]).toEqual([semiMb, heapMb])
  })
})

describe('semiSpaceMax', () => {
  const max = (changes, heapMb = 259) => {
    const found = semiSpaceMax(hello(changes), heapMb * MIB)
    return found && [found.bytes / MIB, found.origin]
  }
  it.each([
    ['derived from the container limit', {}, 259, [1, 'derived']],
    ['derived from the machine', { constrainedBytes: undefined }, 4144, [16, 'derived']],
    [
      'the flag, rounded up to a power of two',
      { nodeOptions: ['--max-semi-space-size=24'] },
      352,
      [32, 'flag']
    ],
    [
      'the flag with underscores and a space',
      { execArgv: ['--max_semi_space_size', '16'] },
      304,
      [16, 'flag']
    ],
    [
      'the command line wins over NODE_OPTIONS',
      { nodeOptions: ['--max-semi-space-size=8'], execArgv: ['--max-semi-space-size=32'] },
      352,
      [32, 'flag']
    ],
    [
      '--max-old-space-size does not change the young generation',
      { nodeOptions: ['--max-old-space-size=384'] },
      387,
      [1, 'derived']
    ],
    [
      "a worker's resourceLimits",
      { threadId: 3, resourceLimits: { maxYoungGenerationSizeMb: 48 } },
      300,
      [16, 'resource-limits']
    ],
    [
      'the limit was changed after the start: read back from the heap size limit',
      { constrainedBytes: 1024 * MIB },
      259,
      [1, 'derived']
    ],
    ['unknown for a build with pointer compression', { pointerCompression: true }, 259, null]
  ])('%s', (_, changes, heapMb, expected) => {
    expect(max(changes, heapMb)).toEqual(expected)
  })
})

it('flagsInForce uses the last value of a flag, and treats underscores like dashes', () => {
  const flags = flagsInForce(
    hello({
      nodeOptions: ['--max_old_space_size=100', '--require', 'x.js'],
      execArgv: ['--max-old-space-size=200', '--expose-gc']
    })
  )
  expect(Object.fromEntries(flags)).toEqual({
    '--max-old-space-size': '200',
    '--require': 'x.js',
    '--expose-gc': ''
  })
})

it('a larger semi-space is predicted to cost less, in scavenges and in total', () => {
  const now = {
    semiSpaceBytes: MIB,
    scavengesPerSecond: 190,
    scavengePauseRatio: 0.2,
    ordinaryMajorPauseRatio: 0.2
  }
  const [at4, at16] = [4, 16].map(mib => predictYoungGeneration(now, mib * MIB))
  expect(at4.scavengesPerSecond).toBeLessThan(190)
  expect(at16.scavengesPerSecond).toBeLessThan(at4.scavengesPerSecond)
  expect(at16.gcPauseRatio).toBeLessThan(at4.gcPauseRatio)
  expect(predictYoungGeneration(now, MIB)).toMatchObject({
    scavengesPerSecond: 190,
    gcPauseRatio: 0.4,
    extraBytes: 0,
    cores: 0.4
  })
})

it.each([
  ['unknown', null, 6.25],
  ['10 MiB', 10, 200 / 27],
  ['100 MiB', 100, 12.5]
])('with a live heap of %s, scavenges free a part of a larger semi-space', (_, live, expected) => {
  const now = {
    semiSpaceBytes: 2 * MIB,
    scavengesPerSecond: 100,
    scavengePauseRatio: 0.2,
    ordinaryMajorPauseRatio: 0.2,
    liveBytes: live && live * MIB
  }
  expect(predictYoungGeneration(now, 32 * MIB).scavengesPerSecond).toBeCloseTo(expected)
  expect(predictYoungGeneration(now, 2 * MIB).scavengesPerSecond).toBe(100)
})

it.each([
  [0.02, 0.02, true],
  [0.04, 0.0005, true],
  [0.02, 0.0005, false],
  [0.005, 0.0005, false]
])('with %d of the time in scavenges and %d in major GCs, 32 MiB are worth their memory: %s', (
  scavengePauseRatio, ordinaryMajorPauseRatio, isWorth
) => {
  const now = {
    semiSpaceBytes: 4 * MIB, scavengesPerSecond: 20, scavengePauseRatio, ordinaryMajorPauseRatio
  }
  const [at16, at32] = [16, 32].map(mib => predictYoungGeneration(now, mib * MIB))
  expect(at32.cores < at16.cores).toBe(isWorth)
})
