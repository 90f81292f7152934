'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFileSync } = require('node:child_process')
const {
  AGENT,
  NODES,
  versionOf,
  environment,
  startCollector,
  spawnBounded
} = require('../support/agent-collector')

const SUITES = path.join(__dirname, 'suites')
const MODULES = path.join(__dirname, '../../node_modules')
/** Time limit of a suite; the test kills one that hangs. */
const LONGEST_MS = 60_000
/** Upper bound of the delay that the agent may cause in a suite, on a busy machine. */
const LATER_SECONDS = 20

const cache = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-suites-'))
afterAll(() => fs.rmSync(cache, { recursive: true, force: true }))

/**
 * @param {string} node
 * @param {string} code
 * @returns {boolean} true if the expression is true on this Node.js
 */
const can = (node, code) =>
  execFileSync(node, ['-p', code], { encoding: 'utf8', env: {} }).trim() === 'true'

/**
 * Frameworks whose fake timers replace those of `globalThis`.
 * @type {{ framework: string, args: string[], needs?: string, count: (stdout: string) => number[]
 *   }[]} count: reads the numbers of passed and failed tests; needs: an expression that is true on
 *   Node.js versions that support the framework
 */
const FRAMEWORKS = [
  {
    framework: 'vitest',
    args: [
      path.join(MODULES, 'vitest/vitest.mjs'),
      'run',
      '--root',
      SUITES,
      '--config',
      path.join(SUITES, 'vitest.config.mjs'),
      '--reporter',
      'json'
    ],
    count: stdout => {
      const { numPassedTests, numFailedTests } = JSON.parse(stdout)
      return [numPassedTests, numFailedTests]
    }
  },
  {
    framework: 'mocha with sinon',
    args: [
      path.join(MODULES, 'mocha/bin/mocha.js'),
      '--no-config',
      '--timeout',
      String(LONGEST_MS),
      '--reporter',
      'json',
      path.join(SUITES, 'fake-timers.mocha.js')
    ],
    count: stdout => {
      const {
        stats: { passes, failures }
      } = JSON.parse(stdout)
      return [passes, failures]
    }
  },
  {
    framework: 'jest',
    args: [
      path.join(MODULES, 'jest/bin/jest.js'),
      '--rootDir',
      SUITES,
      '--runInBand',
      '--json',
      '--cacheDirectory',
      cache,
      '--config',
      JSON.stringify({ testMatch: ['**/fake-timers.jest.js'], transform: {} })
    ],
    count: stdout => {
      const { numPassedTests, numFailedTests } = JSON.parse(stdout)
      return [numPassedTests, numFailedTests]
    }
  },
  {
    framework: 'node:test',
    needs: "typeof require('node:test').mock?.timers?.runAll === 'function'",
    args: ['--test-reporter=tap', path.join(SUITES, 'fake-timers.node.js')],
    count: stdout =>
      ['pass', 'fail'].map(word => Number(new RegExp(`^# ${word} (\\d+)$`, 'm').exec(stdout)?.[1]))
  }
]

describe.each(NODES.map(node => [versionOf(node), node]))('on Node %s', (_, node) => {
  it.each(FRAMEWORKS.filter(({ needs }) => !needs || can(node, needs)))(
    'a suite with fake timers of $framework passes and ends as it does without the agent',
    async ({ args, count }) => {
      const collector = await startCollector()
      const run = (/** @type {NodeJS.ProcessEnv} */ env) =>
        spawnBounded(node, args, {
          env: environment({ SUITE_CACHE: cache, CI: '1', ...env }),
          timeoutMs: LONGEST_MS
        }).ended
      try {
        const [plain, watched] = await Promise.all([
          run({}),
          run({ NODE_OPTIONS: `-r ${AGENT}`, MEMWATCH_SOCKET: collector.address })
        ])
        expect(plain).toMatchObject({ code: 0, signal: null })
        expect(count(plain.stdout)).toEqual([expect.any(Number), 0])
        expect({
          code: watched.code,
          signal: watched.signal,
          stderr: watched.stderr.slice(-4000)
        }).toMatchObject({ code: 0, signal: null })
        expect(count(watched.stdout)).toEqual(count(plain.stdout))
        expect(watched.seconds).toBeLessThan(plain.seconds + LATER_SECONDS)
        // Frames arrived during the suite, which proves that it ran with a working agent.
        expect(
          Math.max(...collector.connections.map(({ frames }) => frames.length))
        ).toBeGreaterThanOrEqual(2)
      } finally {
        await collector.stop()
      }
    },
    2 * LONGEST_MS
  )
})
