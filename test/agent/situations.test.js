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
const { situations } = require('./situations')

/** Time limit of a situation; the test kills one that hangs. */
const LONGEST_MS = 60_000
/** Number of situations that run at the same time. */
const AT_ONCE = 2
/** Upper bound of the delay that the agent may cause, on a busy machine. */
const LATER_SECONDS = 10

/** Evaluates the expressions of all situations in one process. @param {string} node */
function answers (node) {
  const expressions = situations.map(({ needs }) => needs ?? 'true')
  const code = `JSON.stringify({
    can: [${expressions.map(expression => `Boolean(${expression})`)}],
    permission: process.allowedNodeEnvironmentFlags.has('--permission') ? '--permission' : '--experimental-permission',
    free: require('fs').readdirSync('/proc/self/fd').length
  })`
  return JSON.parse(execFileSync(node, ['-p', code], { encoding: 'utf8', env: {} }))
}

/**
 * Process ids and addresses differ from run to run, and line numbers of Node.js by the number of
 * listeners.
 * @param {string} text
 * @param {string} folder
 */
const comparable = (text, folder) =>
  text
    .replaceAll(folder, 'FOLDER')
    .replace(/\(node:\d+\)/g, '(node:PID)')
    .replace(/0x[0-9a-f]+/g, '0x')
    .replace(/(node:[\w/]+):\d+:\d+/g, '$1')

describe.each(NODES.map(node => [versionOf(node), node]))(
  'on Node %s an app ends as it does without the agent',
  (_, node) => {
    const { can, permission, free } = answers(node)
    const possible = situations.filter((_, i) => can[i])
    /** @type {string} */
    let folder
    /** @type {Awaited<ReturnType<typeof startCollector>>} */
    let collector
    /**
     * Exits with and without the agent, by the name of the situation.
     * @type {Map<string, Promise<any[]>>}
     */
    const ends = new Map()

    /**
     * @param {import('./situations').Situation} situation
     * @param {boolean} isWatched
     */
    async function run (
      {
        name,
        code = '',
        files = {},
        flags = [],
        args = ['FOLDER/app.cjs'],
        stdin,
        env,
        shell,
        isNative
      },
      isWatched
    ) {
      const own = fs.mkdtempSync(path.join(folder, 'app-'))
      const preload = isWatched ? ['-r', AGENT] : []
      const filled = (/** @type {string} */ text) =>
        text
          .replaceAll('FOLDER', own)
          .replaceAll('AGENT', path.dirname(AGENT))
          .replaceAll('PERMISSION', permission)
          .replaceAll('PRELOAD', preload.join(' '))
          .replaceAll('NODE', node)
          .replaceAll('FREE', String(free))
      for (const [file, text] of Object.entries({ 'app.cjs': code, ...files })) {
        fs.writeFileSync(path.join(own, file), filled(text))
      }
      const command = [node, ...preload, ...[...flags, ...args].map(filled)]
      const [file, ...rest] =
        shell === undefined ? command : ['sh', '-c', filled(shell), 'sh', ...command]
      const { seconds, stdout, stderr, ...end } = await spawnBounded(file, rest, {
        cwd: own,
        stdin,
        timeoutMs: LONGEST_MS,
        env: environment({
          ...env,
          MEMWATCH_INTERVAL_SECONDS: '0.1',
          MEMWATCH_SOCKET: collector.address
        })
      }).ended
      return {
        end: {
          ...end,
          stdout: comparable(stdout, own),
          stderr: isNative ? '' : comparable(stderr, own)
        },
        seconds,
        name
      }
    }

    beforeAll(async () => {
      folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-situations-'))
      collector = await startCollector()
      const waiting = [...possible]
      /** @type {Record<string, (ends: any[]) => void>} */
      const settle = {}
      for (const { name } of possible) {
        ends.set(
          name,
          new Promise(resolve => {
            settle[name] = resolve
          })
        )
      }
      const work = async () => {
        for (let next; (next = waiting.shift());) {
          settle[next.name]([await run(next, false), await run(next, true)])
        }
      }
      for (let i = 0; i < AT_ONCE; i++) work()
    })

    afterAll(async () => {
      await Promise.all(ends.values())
      await collector.stop()
      fs.rmSync(folder, { recursive: true, force: true })
    })

    it.each(possible.map(({ name }) => name))(
      '%s',
      async name => {
        const [plain, watched] = /** @type {any[]} */ (await ends.get(name))
        expect(watched.end).toEqual(plain.end)
        expect(plain.end.signal === 'SIGKILL' && plain.seconds > LONGEST_MS / 1000).toBe(false)
        expect(watched.seconds).toBeLessThan(plain.seconds + LATER_SECONDS)
      },
      3 * LONGEST_MS
    )

    it('and the agent was running meanwhile', () => {
      expect(
        collector.connections.filter(({ frames }) => frames.length > 0).length
      ).toBeGreaterThan(possible.length / 2)
    })
  }
)
