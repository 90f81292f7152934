'use strict'

const { apps } = require('@memwatch/lab')
const { page } = require('./page')
const { table } = require('../markdown')

/** @param {import('@memwatch/lab').LabApp} app */
const repair = app => ({ code: '`--fixed`', fix: 'the fix that is printed', none: '' })[app.fixedBy]

const lab = () =>
  page(
    'The lab',
    'Small real apps: each problem in several guises, and healthy ones that look like a problem ' +
      'to a naive rule. `memwatch simulate NAME` runs one in a cgroup like its container and ' +
        'watches it. They are the package `@memwatch/lab`, which `@memwatch/exporter` does not ' +
          'install.',
    '## Problems',
    table(
      ['app', 'must be found', 'container', 'what it does', 'repaired by'],
      apps
        .filter(app => app.diagnosis || app.opportunity)
        .map(app => [
          `\`${app.id}\``,
          app.diagnosis ?? `${app.opportunity} (an opportunity)`,
          `${app.memoryLimitBytes / 2 ** 20} MB${app.limitOnParent ? ', on the parent' : ''}`,
          app.about,
          repair(app)
        ])
    ),
    '## Healthy',
    table(
      ['app', 'what it does'],
      apps
        .filter(app => !app.diagnosis && !app.opportunity)
        .map(app => [`\`${app.id}\``, app.about])
    )
  )

module.exports = { lab }
