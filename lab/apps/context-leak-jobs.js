'use strict'

// A template renderer caches the sandbox of every template version, although new versions never
// stop coming. `--fixed` renders all templates in one sandbox.
const vm = require('node:vm')
const { appRun } = require('../app-run')
const { withJobs } = require('../with-jobs')

/** @type {Map<string, vm.Context>} */
const sandboxes = new Map()
const run = appRun({ work: 'pages', figures: () => ({ sandboxes: sandboxes.size }) })

/** @param {number} number */
function render (number) {
  const version = run.fixed ? 'all' : `template-${Math.floor(number / 8)}`
  let sandbox = sandboxes.get(version)
  if (!sandbox) sandboxes.set(version, sandbox = vm.createContext({ title: version, rows: [] }))
  vm.runInContext(
    'rows = Array.from({ length: 400 }, (_, i) => ({ i, text: title + i })); rows.length + ' +
      `${number % 50}`,
    sandbox
  )
}

withJobs(run, { perSecond: 30, job: render })
