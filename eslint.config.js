'use strict'

const neostandard = require('neostandard')

module.exports = [
  ...neostandard({ env: ['node', 'jest'], ignores: ['coverage/**', '**/.cache/**'] }),
  // What runs in a browser.
  ...neostandard({ env: ['browser'], files: ['exporter/page/**/*.mjs'] }),
  {
    files: ['**/*.js'],
    languageOptions: { sourceType: 'commonjs' },
    rules: {
      strict: ['error', 'global'],
      // Short rows of numbers read better on one line than on four.
      '@stylistic/object-property-newline': 'off'
    }
  },
  // Commands write through one file, which escapes all text.
  {
    files: ['exporter/cli/**/*.js'],
    ignores: ['exporter/cli/output.js'],
    rules: {
      'no-console': 'error',
      'no-restricted-properties': ['error', ...['stdout', 'stderr'].map(property => ({ object: 'process', property, message: 'Use cli/output.js.' }))]
    }
  }
]
