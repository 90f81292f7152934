'use strict'

const { apps } = require('@memwatch/lab')
const { page } = require('./page')
const { table } = require('../markdown')

/** @param {import('@memwatch/lab').LabApp} app */
const repair = app => ({ code: '`--fixed`', fix: 'the fix that is printed', none: '' })[app.fixedBy]

const lab = () =>
  page(
    'The lab',
    'The lab has small real apps. Each problem has several apps. Some healthy apps resemble a ' +
    'problem, to test for false findings. `memwatch simulate NAME` runs one in a cgroup like its ' +
    'container and ' +
        'watches it. The apps are in the package `@memwatch/lab`, which `@memwatch/exporter` ' +
        'does not install.',
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
