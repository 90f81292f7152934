'use strict'

const path = require('node:path')
const { attemptOf } = require('../../cli/try/attempt')
const { measure } = require('../../cli/comparison/measure')
const { fromOutside } = require('../../cli/try/from-outside')
const { findCase } = require('@memwatch/engine/verdicts/case')
const { primaryOf } = require('@memwatch/engine/verdicts/urgency')
const { workOfLoad, workOfApp } = require('../../cli/comparison/work-of')
const { defined } = require('../support/defined')
const { memwatch } = require('../support/memwatch')

/** The fields of a hello that matter here. */
const hello = /** @type {import('@memwatch/agent/protocol/frame').Hello} */ (/** @type {unknown} */ ({ execArgv: [], nodeOptions: [], mallocEnv: {} }))
const jemalloc = { env: { LD_PRELOAD: 'libjemalloc.so.2', MALLOC_CONF: 'narenas:2' } }

describe('a fix without a change of code', () => {
  it.each([
    [
      'goes into NODE_OPTIONS, behind existing options',
      { flag: '--max-semi-space-size=16', env: { NODE_OPTIONS: '--max-semi-space-size=16' } },
      { command: ['npm', 'start'], nodeOptions: '--require "a b.js"' },
      {
        command: ['npm', 'start'],
        env: { NODE_OPTIONS: '--require "a b.js" --max-semi-space-size=16' }
      }
    ],
    [
      'replaces a flag on the command line, which overrides NODE_OPTIONS',
      { flag: '--max-old-space-size=300' },
      {
        command: [
          'node',
          '--max-old-space-size',
          '1024',
          '--expose-gc',
          'app.js',
          '--max-old-space-size=7'
        ],
        hello: { ...hello, execArgv: ['--max-old-space-size', '1024', '--expose-gc'] }
      },
      {
        command: [
          'node',
          '--expose-gc',
          '--max-old-space-size=300',
          'app.js',
          '--max-old-space-size=7'
        ],
        env: {}
      }
    ],
    [
      'loads an allocator that the loader finds',
      jemalloc,
      { loads: () => true },
      { command: ['node', 'app.js'], env: jemalloc.env }
    ]
  ])('%s', (_, change, of, expected) => {
    expect(fromOutside(change, { command: ['node', 'app.js'], hello, ...of })).toEqual(expected)
  })
  it.each([
    ['code', { code: 'transfer(0)', flag: '--x=1' }, {}, /a change in the code/],
    ['the container', { memoryLimitBytes: 2 ** 29 }, {}, /a change of the container/],
    ['the image', { dockerfile: 'FROM x' }, {}, /a change of the image/],
    [
      'possible on the command line of a node that another program starts',
      { flag: '--x=1' },
      { command: ['npm', 'start'] },
      /--x=1 must be on the command line of node, .*; and npm is not node/
    ],
    [
      'a library that is not there',
      { env: { LD_PRELOAD: 'libnosuchjemalloc.so.2' } },
      {},
      /the loader does not find libnosuchjemalloc.so.2.*apt-get install libjemalloc2/
    ]
  ])('is not %s, and the command says why', (_, change, of, reason) => {
    expect(fromOutside(change, { command: ['node', 'app.js'], hello, ...of })).toEqual({
      reason: expect.stringMatching(reason)
    })
  })
})

describe('the work of a load generator', () => {
  it.each([
    [
      "autocannon's JSON",
      '{"latency":{"p99":41},"requests":{"average":812.5,"total":8125},"errors":1,"non2xx":2}',
      { requests: 8125, requestsPerSecond: 812.5, latencyP99Seconds: 0.041, failures: 3 }
    ],
    ['JSON behind other lines', 'Running 10s test\n{"requests":{"total":5}}\n', { requests: 5 }],
    [
      'wrk',
      '  Latency Distribution\n     50%    1.20ms\n     99%   41.00ms\n  8125 requests in ' +
        '10.00s, 1MB read\nRequests/sec:    812.51\n',
      { requests: 8125, requestsPerSecond: 812.51, latencyP99Seconds: 0.041 }
    ],
    [
      'hey',
      '  Requests/sec:\t812.51\n  99% in 0.0410 secs\n',
      { requestsPerSecond: 812.51, latencyP99Seconds: 0.041 }
    ],
    ['anything else', 'done\n', undefined],
    ['JSON of something else', '{"ok":true}', undefined]
  ])('is read from %s', (_, output, work) => expect(workOfLoad(output)).toEqual(work))

  it('may be in the last line of the app', () => {
    expect(workOfApp('5 s: 10 requests\n{"lab":"summary","requests":12}\n')).toEqual({
      requests: 12
    })
    expect(workOfApp('{"requests":12}\nbye\n')).toBeUndefined()
    expect(workOfApp('')).toBeUndefined()
  })
})

describe('the outcome of a fix', () => {
  const starved = '20-semi-space-starvation-broken'
  const run = (/** @type {string} */ name) =>
    measure(path.join(__dirname, `../recordings/${name}.ndjson.gz`))

  it.each([
    ['fixed, where the finding is gone and the promise was measured', 'fixed', true],
    ['no_effect, where it is gone and nothing got better', 'broken', true],
    ['not_fixed, where it remains', 'broken', false]
  ])('is %s', async (is, form, isGone) => {
    const before = await run(starved)
    const verdict = defined(primaryOf(findCase(defined(before.target)).verdicts))
    const after = await run(starved.replace('broken', form))
    if (isGone) {
      const known = findCase(defined(after.target))
      known.verdicts = known.verdicts.filter(({ diagnosis }) => diagnosis !== verdict.diagnosis)
    }
    const chosen = { verdict, fix: verdict.fix[0], skipped: [] }
    const { outcome } = attemptOf({ before: [before], after: [after] }, chosen, '/tmp', {})
    expect(outcome).toBe(is.split(',')[0])
  })
})

describe('memwatch try', () => {
  it.each([
    [
      'an unknown diagnosis',
      ['--diagnosis', 'semi-space-starvatoin'],
      /did you mean semi-space-starvation/
    ],
    [
      'a size without a unit',
      ['--memory', '512'],
      /--memory: expected an amount of memory such as 512Mi, .* got "512": a number without a unit is bytes/
    ],
    ['a size that is too small', ['--memory', '63Mi'], /at least 64Mi/],
    [
      'an invalid change',
      ['--with', 'max-semi-space-size=16'],
      /--with: expected a flag of node such as --max-semi-space-size=16, or NAME=VALUE, got "max/
    ],
    [
      'two options for the change',
      ['--with', 'A=1', '--fix', '2'],
      /--with: cannot be combined with --fix/
    ],
    [
      'a file of results as load',
      ['--load', 'load.json'],
      /--load: expected a command that sends load, got the file "load.json"; an example: --load /
    ],
    ['no runs', ['--repeat', '0'], /--repeat: expected a whole number from 1 on/],
    ['a folder that cannot be created', ['--keep', '/dev/null/x'], /--keep: /]
  ])('refuses %s', async (_, options, message) => {
    const { code, stderr } = await memwatch(['try', ...options, '--', 'true'])
    expect(stderr).toMatch(message)
    expect(code).toBe(2)
  })
})
