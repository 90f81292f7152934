'use strict'

const { reasons } = require('../../exporter/deaths/reasons')
const { silenceCauses } = require('../../exporter/deaths/silence')
const { page } = require('./page')
const { table } = require('../markdown')

const deaths = () =>
  page(
    'Deaths',
    'When a watched process ends, the exporter reports the cause: `/api/v1/deaths`, `memwatch ' +
      'last-death`, `memwatch_target_exits_total{reason}`. The field `sure` is `certain`, ' +
      '`likely` or `possible`.\n\n' +
      'On the same machine, or with a shared process namespace, the exporter reads exit status ' +
      'and OOM kills from the kernel. A sidecar that sees no other process infers the cause from ' +
      'the goodbye and the last frames, and is never `certain`. Each death keeps the last ten ' +
      'minutes.',
    '## Reasons',
    table(
      ['reason', 'meaning', 'known from'],
      Object.entries(reasons).map(([reason, { title, known }]) => [`\`${reason}\``, title, known])
    ),
    '## Silence\n\nA target that sends nothing and has not ended: ' +
      '`memwatch_target_silence_seconds{cause}`.',
    table(
      ['cause', 'meaning'],
      Object.entries(silenceCauses).map(([cause, help]) => [`\`${cause}\``, help])
    )
  )

module.exports = { deaths }
