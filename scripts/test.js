'use strict'

/**
 * Runs all tests, as CI does: `npm test`. It installs the tools of the integration tests if
 * possible, then runs all checks and tests, and ends with one line of counts.
 */

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { ROOT } = require('./generate')

/** @typedef {[title: string, ...command: string[]]} Check */

/** @type {Check} */
const TOOLS = [
  'Prometheus, Alertmanager, jemalloc, Helm and others',
  process.execPath,
  'scripts/setup-tools.js'
]
/**
 * Checks that only read files. They use the CPU time that the tests leave, many of which wait for
 * processes. @type {Check[]}
 */
const READING = [
  ['eslint', 'npx', '--no-install', 'eslint', '.'],
  ['tsc, for tests and benches', 'npx', '--no-install', 'tsc', '-p', 'test'],
  ['tsc --strict', 'npx', '--no-install', 'tsc', '-p', 'tsconfig.json'],
  ['spelling', 'npx', '--no-install', 'cspell', '--no-progress', '--no-summary'],
  ['generated files are up to date', process.execPath, 'scripts/generate.js', '--check'],
  ['imports follow the rules', 'npx', '--no-install', 'depcruise', 'agent', 'cli', 'engine', 'exporter', 'lab', 'mcp', 'otlp'],
  ['tsc --strict, for the browser', 'npx', '--no-install', 'tsc', '-p', 'exporter/page']
]
/** Checks that measure or start servers; they run one at a time. @type {Check[]} */
const RUNNING = [
  [
    'frame, ingest and scrape cost no more CPU time than accepted',
    process.execPath,
    'bench/ratios.js',
    '--check'
  ],
  ['pint: each rule, checked with a real Prometheus', process.execPath, 'bench/lint-rules.js']
]
/**
 * Status of a check that the machine cannot run. Such a check is printed and counted, and the tests
 * continue without it.
 */
const CANNOT_RUN = 4
/** Number of last lines of a failed check that the summary repeats. */
const REPEATED_LINES = 30

/**
 * Runs a command to its end.
 * @param {string[]} command
 * @param {'foreground' | 'background'} [as] in the background, it has the lowest priority and its
 *   output is only collected
 * @returns {Promise<{ status: number | null, text: string }>} exit status, output
 */
async function run ([file, ...args], as = 'foreground') {
  const child = spawn(file, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] })
  if (as === 'background' && child.pid) {
    os.setPriority(child.pid, os.constants.priority.PRIORITY_LOW)
  }
  /** @type {Buffer[]} */
  const chunks = []
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', chunk => {
      chunks.push(chunk)
      if (as === 'foreground') process.stdout.write(chunk)
    })
  }
  const [status] = await once(child, 'close')
  return { status, text: Buffer.concat(chunks).toString() }
}

async function main () {
  let passed = 0
  let failed = 0
  let missing = 0
  /** @type {string[]} */
  const failures = []
  /**
   * @param {string} title
   * @param {{ status: number | null, text: string }} result
   */
  const count = (title, { status, text }) => {
    if (status === 0) passed++
    else if (status === CANNOT_RUN) {
      missing++
      console.log(`SKIPPED: ${title}`)
    } else {
      failed++
      const lines = text.trimEnd().split('\n').slice(-REPEATED_LINES)
      failures.push(`${lines.join('\n')}\nFAILED: ${title} (status ${status})`)
    }
  }
  /** @param {Check} check */
  const runAlone = async ([title, ...command]) => {
    console.log(`\n== ${title}`)
    count(title, await run(command))
  }
  await runAlone(TOOLS)
  for (const check of RUNNING) await runAlone(check)
  const reading = (async () => {
    for (const [title, ...command] of READING) {
      const result = await run(command, 'background')
      console.log(`\n== ${title}\n${result.text.trimEnd()}`)
      count(title, result)
    }
  })()

  console.log('\n== jest')
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-test-'))
  const output = path.join(folder, 'results.json')
  const jest = ['jest', '--json', '--outputFile', output, ...process.argv.slice(2)]
  const good = (await run(['npx', '--no-install', ...jest])).status === 0
  await reading
  let skipped = 0
  if (fs.existsSync(output)) {
    const { numPassedTests, numFailedTests, numPendingTests, numRuntimeErrorTestSuites } =
      JSON.parse(fs.readFileSync(output, 'utf8'))
    passed += numPassedTests
    failed += numFailedTests + numRuntimeErrorTestSuites
    skipped = numPendingTests
  }
  if (!good && failed === 0) failed++
  fs.rmSync(folder, { recursive: true, force: true })
  for (const failure of failures) console.log(`\n${failure}`)
  console.log(`\n${passed} passed, ${failed} failed, ${skipped + missing} skipped`)
  if (skipped > 0 && process.env.CI) console.log('SKIPPED tests are failures in CI')
  process.exitCode = failed > 0 || (skipped > 0 && process.env.CI) ? 1 : 0
}

main()
