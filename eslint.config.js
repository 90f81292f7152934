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
  {
    // A judge compares with its `limits`, each of which has a reason beside it and stands in docs/diagnoses.md.
    files: ['exporter/diagnoses/*.js'],
    rules: {
      'no-restricted-syntax': ['error', {
        selector: ':matches(Property[key.name=/^(judge|fix)$/], FunctionDeclaration, ArrowFunctionExpression) ' +
          'Literal[raw=/^[0-9.]/]:not([value=0]):not([value=1])',
        message: 'A number in a judge or a fix belongs in `limits`, or in a named constant with its reason.'
      }]
    }
  }
]
