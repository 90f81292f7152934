'use strict'

const neostandard = require('neostandard')

/** An app, a polyfill or fake timers replace these: the agent captures them at preload. */
const REPLACED_GLOBALS = [
  'setTimeout',
  'clearTimeout',
  'setInterval',
  'clearInterval',
  'setImmediate',
  'clearImmediate',
  'queueMicrotask',
  'performance',
  'Date',
  'JSON',
  'Promise',
  'fetch',
  'global',
  'globalThis'
]
/** Functions of process that have functions of their own, such as hrtime.bigint(). */
const REPLACED_OF_PROCESS = ['hrtime', 'memoryUsage']
const CAPTURED = 'Use agent/primordials.js: an app may replace this while the agent runs.'

module.exports = [
  ...neostandard({
    env: ['node', 'jest'],
    ignores: ['coverage/**', 'exporter/page/built/**', '**/.cache/**', 'docs/.vitepress/{cache,dist}/**']
  }),
  // Modules of the browser.
  ...neostandard({ env: ['browser'], files: ['exporter/page/**/*.mjs'] }),
  {
    files: ['**/*.js'],
    languageOptions: { sourceType: 'commonjs' },
    rules: {
      strict: ['error', 'global'],
      // Texts for people and templates stay whole where a break would hide what they say; so do the
      // types of casts.
      '@stylistic/max-len': [
        'error',
        {
          code: 100,
          ignoreUrls: true,
          ignoreStrings: true,
          ignoreTemplateLiterals: true,
          ignoreRegExpLiterals: true,
          ignorePattern: '@type|import\\('
        }
      ],
      // Short rows of numbers read better on one line than on four.
      '@stylistic/object-property-newline': 'off'
    }
  },
  {
    // A judge compares with its `limits`, each of which has a reason beside it and stands in
    // docs/diagnoses.md.
    files: ['engine/diagnoses/*.js'],
    rules: {
      'no-restricted-syntax': [
        'error',
        {
          selector:
            ':matches(Property[key.name=/^(judge|fix)$/], FunctionDeclaration, ArrowFunctionExpression) ' +
            'Literal[raw=/^[0-9.]/]:not([value=0]):not([value=1])',
          message:
            'A number in a judge or a fix belongs in `limits`, or in a named constant with its reason.'
        }
      ]
    }
  },
  {
    // A function is read on one screen.
    files: ['{agent,cli,engine,lab}/**/*.js', 'exporter/**/*.{js,mjs}'],
    rules: {
      'max-lines-per-function': [
        'error',
        { max: 60, skipComments: true, skipBlankLines: true }
      ]
    }
  },
  {
    files: ['agent/**/*.js'],
    ignores: ['agent/index.js', 'agent/primordials.js', 'agent/v8-functions.js'],
    rules: {
      'no-restricted-globals': [
        'error',
        ...REPLACED_GLOBALS.map(name => ({ name, message: CAPTURED }))
      ],
      'no-restricted-properties': [
        'error',
        ...REPLACED_OF_PROCESS.map(property => ({ object: 'process', property, message: CAPTURED }))
      ],
      'no-restricted-syntax': [
        'error',
        {
          selector:
            "CallExpression[callee.name='require'][arguments.0.value=/^(node:)?(fs|timers|perf_hooks|v8)(\\u002F|$)/]",
          message: CAPTURED
        },
        {
          selector:
            "CallExpression[callee.object.name='process']" +
            '[callee.property.name!=/^(on|removeListener|cwd|getuid|constrainedMemory)$/]',
          message: CAPTURED
        }
      ]
    }
  },
  // Commands write through one file, which escapes all text.
  {
    files: ['cli/**/*.js'],
    ignores: ['cli/program/output.js'],
    rules: {
      'no-console': 'error',
      'no-restricted-properties': [
        'error',
        ...['stdout', 'stderr'].map(property => ({
          object: 'process',
          property,
          message: 'Use cli/program/output.js.'
        }))
      ]
    }
  }
]
