'use strict'

/**
 * All tests, as CI runs them: `npm test`. Installs the tools of the integration tests if possible,
 * then runs all checks and tests, and ends with one line of counts.
 */

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { spawnSync } = require('node:child_process')
const { ROOT } = require('./generate')

/** @type {[title: string, ...command: string[]][]} */
const CHECKS = [
  [
    'Prometheus, Alertmanager, jemalloc, Helm and others',
    process.execPath,
    'scripts/setup-tools.js'
  ],
  ['generated files are up to date', process.execPath, 'scripts/generate.js', '--check'],
  ['eslint', 'npx', '--no-install', 'eslint', '.'],
  ['spelling', 'npx', '--no-install', 'cspell', '--no-progress', '--no-summary'],
  ['who imports whom', 'npx', '--no-install', 'depcruise', 'agent', 'cli', 'engine', 'exporter', 'lab', 'otlp'],
  ['tsc --strict', 'npx', '--no-install', 'tsc', '-p', 'tsconfig.json'],
  ['tsc --strict, for the browser', 'npx', '--no-install', 'tsc', '-p', 'exporter/page'],
  ['tsc, for tests and benches', 'npx', '--no-install', 'tsc', '-p', 'test'],
  [
    'what runs all the time costs no more than it did',
    process.execPath,
    'bench/ratios.js',
    '--check'
  ],
  ['pint: every rule beside a real Prometheus', process.execPath, 'bench/lint-rules.js']
]
/**
 * Status of a check that the machine cannot run. It is printed and counted; the tests go on without
 * it.
 */
const CANNOT_RUN = 4

/**
 * @param {string[]} command
 * @returns {number | null} its exit status
 */
function run ([file, ...args]) {
  return spawnSync(file, args, { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'] }).status
}

function main () {
  let passed = 0
  let failed = 0
  let missing = 0
  for (const [title, ...command] of CHECKS) {
    console.log(`\n== ${title}`)
    const status = run(command)
    if (status === 0) passed++
    else if (status === CANNOT_RUN) {
      missing++
      console.log(`SKIPPED: ${title}`)
    } else {
      failed++
      console.log(`FAILED: ${title}`)
    }
  }

  console.log('\n== jest')
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-test-'))
  const output = path.join(folder, 'results.json')
  const good =
    run([
      'npx',
      '--no-install',
      'jest',
      '--json',
      '--outputFile',
      output,
      ...process.argv.slice(2)
    ]) === 0
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
  console.log(`\n${passed} passed, ${failed} failed, ${skipped + missing} skipped`)
  if (skipped > 0 && process.env.CI) console.log('SKIPPED tests are failures in CI')
  process.exitCode = failed > 0 || (skipped > 0 && process.env.CI) ? 1 : 0
}

main()
