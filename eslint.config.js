'use strict'

const neostandard = require('neostandard')

module.exports = [
  ...neostandard({ env: ['node', 'jest'], ignores: ['coverage/**', '**/.cache/**'] }),
  {
    // The design's banned names: a module called this has no one idea.
    rules: {
      'no-restricted-exports': ['error', { restrictedNamedExports: ['utils', 'helper', 'manager'] }],
      strict: ['error', 'global']
    }
  }
]
