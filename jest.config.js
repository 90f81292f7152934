'use strict'

/** The package of OpenTelemetry that loads a builtin by import(). */
const LOADS_BY_IMPORT = 'node_modules/@opentelemetry/otlp-exporter-base/'

module.exports = {
  testEnvironment: 'node',
  testMatch: ['<rootDir>/test/**/*.test.js'],
  testSequencer: '<rootDir>/test/support/longest-first.js',
  // The project's files need no Babel, which would take CPU time in each clean clone.
  transform: { [LOADS_BY_IMPORT]: '<rootDir>/test/support/dynamic-import.js' },
  transformIgnorePatterns: [],
  // Jest runs files in a context of their own, in which each use of a global is a slow look-up.
  sandboxInjectedGlobals: [
    'Array', 'Buffer', 'Float64Array', 'Infinity', 'JSON', 'Map', 'Math', 'Number', 'Object', 'Set',
    'String'
  ],
  setupFilesAfterEnv: ['<rootDir>/test/support/stop-running.js'],
  // Many suites wait for real processes: three keep the two cores of a CI machine busy.
  maxWorkers: 3,
  testTimeout: 30_000
}
