'use strict'

module.exports = {
  testEnvironment: 'node',
  testMatch: ['<rootDir>/test/**/*.test.js'],
  // Real processes are spawned: two at a time is what a two-core machine carries.
  maxWorkers: 2,
  testTimeout: 30_000
}
