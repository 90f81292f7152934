'use strict'

const { parse } = require('yaml')
const { splitNodeOptions } = require('../../agent/protocol/node-options')
const { patchOf, workloadOf, NoPatchError } = require('../../engine/fixes/patch')
const { nodeFlagChange } = require('../../engine/fixes/node-flag')
const allocatorFragmentation = require('../../engine/diagnoses/allocator-fragmentation')
const { jemallocChange } = require('../../engine/fixes/malloc')
const { startExporter } = require('../support/exporter')
const { hello } = require('../support/frames')
const { memwatch } = require('../support/memwatch')
const { tellRecording } = require('../support/recorded-agent')

const PRELOAD = ['--require', '/run/memwatch/agent/index.js']
const POD = { name: 'shop-5d4c7f9b8-x2k4q', namespace: 'store', uid: 'u', container: 'app' }
const ALLOWED = ['--max-semi-space-size']
const change = (changes = {}) => ({
  title: 'Let it grow',
  risk: 'More RSS.',
  change: nodeFlagChange(hello({ allowedFlags: ALLOWED, ...changes }), {
    '--max-semi-space-size': 16
  })
})
const target = (changes = {}) => ({ target: 'shop', nodeOptions: [], pod: POD, ...changes })

describe('a patch for Kubernetes', () => {
  it('names the workload and the container, and contains only changes', () => {
    const text = patchOf(change(), target(), 'kubernetes')
    expect(parse(text)).toEqual({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'shop', namespace: 'store' },
      spec: {
        template: {
          spec: {
            containers: [
              { name: 'app', env: [{ name: 'NODE_OPTIONS', value: '--max-semi-space-size=16' }] }
            ]
          }
        }
      }
    })
    expect(text).toMatch(/^# Let it grow\. More RSS\.\n# kubectl apply --server-side/)
  })

  const nodeOptions = ['--title=a "b"', ...PRELOAD, '--max-semi-space-size=1']
  const valueOf = text => parse(text).spec.template.spec.containers[0].env[0].value
  it.each([
    ['an agent preloaded by NODE_OPTIONS is kept', {}, [...PRELOAD]],
    ['options of an admission policy are omitted', { injected: true }, []]
  ])('%s, and other options stay, with their quotes', (_, pod, preload) => {
    const text = patchOf(
      change({ nodeOptions }),
      target({ nodeOptions, pod: { ...POD, ...pod } }),
      'kubernetes'
    )
    expect(splitNodeOptions(valueOf(text))).toEqual([
      '--title=a "b"',
      '--max-semi-space-size=16',
      ...preload
    ])
  })

  it('asks for memory', () => {
    const text = patchOf(
      { title: 'Ask for 640 MiB', risk: '', change: { memoryLimitBytes: 640 * 2 ** 20 } },
      target(),
      'kubernetes'
    )
    expect(parse(text).spec.template.spec.containers).toEqual([
      { name: 'app', resources: { limits: { memory: '640Mi' } } }
    ])
    expect(text).toContain('raise the request as well')
  })

  it('names the library that the image needs', () => {
    const text = patchOf(
      { title: 'jemalloc', risk: '', change: jemallocChange(hello()) },
      target(),
      'kubernetes'
    )
    expect(text).toContain(
      '# The image needs the library: RUN apt-get update && apt-get install -y ' +
        '--no-install-recommends libjemalloc2'
    )
    expect(parse(text).spec.template.spec.containers[0].env.map(({ name }) => name)).toEqual([
      'LD_PRELOAD',
      'MALLOC_CONF'
    ])
  })

  it('uses the workload and container that the operator names', () => {
    const text = patchOf(change(), target({ pod: null }), 'kubernetes', {
      workload: 'statefulset/db',
      namespace: 'n',
      container: 'c'
    })
    expect(parse(text)).toMatchObject({
      kind: 'StatefulSet',
      metadata: { name: 'db', namespace: 'n' },
      spec: { template: { spec: { containers: [{ name: 'c' }] } } }
    })
    expect(
      parse(patchOf(change(), target({ pod: { ...POD, namespace: undefined } }), 'kubernetes'))
        .metadata
    ).toEqual({ name: 'shop' })
  })

  it.each([
    ['because shop does not report its pod', { pod: null }, {}],
    [
      'the name of pod shop-x2k4q does not show its workload',
      { pod: { ...POD, name: 'shop-x2k4q' } },
      {}
    ],
    ['--container: expected the name of the container, because shop', { pod: { ...POD, container: undefined } }, {}],
    ['--workload: expected deployment/NAME', {}, { workload: 'pod/shop' }],
    ['--workload: expected deployment/NAME', {}, { workload: 'deployment/a b' }]
  ])('%s', (message, changes, where) => {
    expect(() => patchOf(change(), target(changes), 'kubernetes', where)).toThrow(NoPatchError)
    expect(() => patchOf(change(), target(changes), 'kubernetes', where)).toThrow(message)
  })
})

it.each([
  ['shop-5d4c7f9b8-x2k4q', 'Deployment', 'shop'],
  ['my-shop-7b9f6c5d4d-bcdfg', 'Deployment', 'my-shop'],
  ['shop-0', 'StatefulSet', 'shop'],
  ['shop-x2k4q', undefined, undefined],
  ['shop', undefined, undefined]
])('pod %s is of %s %s', (pod, kind, name) => {
  expect(workloadOf(pod)).toEqual(kind && { kind, name })
})

describe('other forms', () => {
  it('the value of NODE_OPTIONS', () => {
    expect(
      patchOf(change({ nodeOptions: PRELOAD }), target({ nodeOptions: PRELOAD }), 'node-options')
    ).toBe('--max-semi-space-size=16 --require /run/memwatch/agent/index.js\n')
  })
  it('lines of a Dockerfile', () => {
    expect(patchOf(change({ nodeOptions: ['--title=a "b"'] }), target(), 'dockerfile')).toBe(
      'ENV NODE_OPTIONS="\\"--title=a \\\\\\"b\\\\\\"\\" --max-semi-space-size=16"\n'
    )
    expect(
      patchOf(
        { title: '', risk: '', change: jemallocChange(hello()) },
        target(),
        'dockerfile'
      ).split('\n')
    ).toEqual([
      expect.stringMatching(/^RUN apt-get/),
      'ENV LD_PRELOAD="libjemalloc.so.2"',
      expect.stringMatching(/^ENV MALLOC_CONF="/),
      ''
    ])
  })
  it.each([
    ['the fix is a change of the code: keep less', { code: 'keep less' }],
    [
      'the fix is a flag for the command line of node: --max-semi-space-size=16. NODE_OPTIONS',
      change({ execArgv: ['--max-semi-space-size=1'] }).change
    ],
    ['the fix does not change NODE_OPTIONS', { memoryLimitBytes: 1 }]
  ])('a change that this form cannot express is an error: %s', (message, impossible) => {
    expect(() =>
      patchOf({ title: '', risk: '', change: impossible }, target(), 'node-options')
    ).toThrow(message)
  })
})

describe('memwatch fix', () => {
  let exporter
  beforeAll(async () => { exporter = await startExporter() })
  afterAll(() => exporter.stop())
  const fix = (...args) => memwatch(['fix', ...args, '--url', exporter.url])

  it('prints the fix for the primary verdict of a real starved app', async () => {
    const connection = await tellRecording(exporter, 'semi-space-starvation', {
      name: 'shop',
      pod: POD
    })
    const { code, stdout } = await fix('shop', '--format', 'kubernetes')
    expect([code, parse(stdout).metadata]).toEqual([0, { name: 'shop', namespace: 'store' }])
    expect(stdout).toMatch(/value: ".*--max-semi-space-size=\d+"/)
    expect(await fix('shop', '--format', 'node-options')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/--max-semi-space-size=\d+\n$/)
    })
    connection.destroy()
  })

  it('reports a missing finding or fix, and names the wrong option', async () => {
    const connection = await tellRecording(exporter, 'healthy-steady', { name: 'well', pid: 5 })
    expect(await fix('well', '--format', 'dockerfile')).toMatchObject({
      code: 1,
      stdout: '',
      stderr: 'memwatch fix: well has no finding, and needs no fix\n'
    })
    expect(
      await fix('well', '--format', 'dockerfile', '--diagnosis', 'semi-space-starvation')
    ).toMatchObject({ code: 1, stderr: expect.stringContaining('well has no finding semi') })
    expect(await fix('well', '--format', 'dockerfile', '--diagnosis', 'nothing')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--diagnosis: expected one of')
    })
    expect(await fix('shop', '--format', 'dockerfile', '--fix', '9')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--fix: expected a number up to 1, the fixes of semi-space-starvation, got 9')
    })
    expect(await fix('shop', '--format', 'dockerfile', '--fix', 'best')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--fix: expected a number')
    })
    expect(await fix('nobody', '--format', 'dockerfile')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('unknown target: nobody main; known targets: shop, well')
    })
    expect(await fix('shop', '--format', 'yaml')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        '--format: expected kubernetes, dockerfile or node-options, got "yaml"'
      )
    })
    connection.destroy()
  })
})

it('settings of glibc are listed after jemalloc, without a predicted saving', () => {
  const MIB = 2 ** 20
  const fixesOf = (changes = {}) => allocatorFragmentation.fix(
    /** @type {any} */ ({
      retainedBytes: 100 * MIB,
      rssBytes: 300 * MIB,
      jemallocSavingBytes: 30 * MIB,
      arenaShareRatio: 1,
      trimmableBytes: 0,
      ...changes
    }),
    hello({ mallocEnv: {} }),
    allocatorFragmentation.limits
  )
  const [first, ...others] = fixesOf()
  expect(first.change.env).toHaveProperty('LD_PRELOAD')
  expect(first.predicted[0].to).toBe(270 * MIB)
  expect(others.map(({ change, predicted }) => [change.env, predicted])).toEqual([
    [{ MALLOC_ARENA_MAX: '2' }, []],
    [{ MALLOC_MMAP_THRESHOLD_: '32768' }, []]
  ])
  expect(fixesOf({ arenaShareRatio: 0.4 })).toHaveLength(2)
  expect(fixesOf({ jemallocSavingBytes: 5 * MIB })).toEqual([])
})
