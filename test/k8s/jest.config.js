'use strict'

module.exports = {
  rootDir: __dirname,
  testEnvironment: 'node',
  testMatch: ['<rootDir>/scenarios/*.scenario.js'],
  transform: {},
  // Two cores are enough for one scenario at a time.
  maxWorkers: 1,
  verbose: true,
  testTimeout: 300_000
}
