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
  }
]
