'use strict'

const { reasons } = require('../../exporter/deaths/reasons')
const { silenceCauses } = require('../../exporter/deaths/silence')
const { page } = require('./page')
const { table } = require('../markdown')

const deaths = () =>
  page(
    'Deaths',
    'When a watched process is gone, the exporter says why: `/api/v1/deaths`, `memwatch ' +
      'last-death`, `memwatch_target_exits_total{reason}`. How sure it is says `sure`: ' +
        '`certain`, `likely` or `possible`. On the same machine, or with a shared process ' +
          'namespace, it reads exit status and kills for memory from the kernel; a sidecar that ' +
            'sees no process but its own goes by the goodbye and the last frames, and never ' +
              'says `certain`. The last ten minutes are kept with each death.',
    '## Reasons',
    table(
      ['reason', 'what it is', 'from what it is known'],
      Object.entries(reasons).map(([reason, { title, known }]) => [`\`${reason}\``, title, known])
    ),
    '## Silence\n\nWho sends nothing and is not known to be gone: ' +
      '`memwatch_target_silence_seconds{cause}`.',
    table(
      ['cause', 'what it is'],
      Object.entries(silenceCauses).map(([cause, help]) => [`\`${cause}\``, help])
    )
  )

module.exports = { deaths }
