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
      'and OOM kills from the kernel. A sidecar that cannot see the app\'s process infers the ' +
      'cause from the goodbye and the last frames; such a cause is never `certain`. Each death ' +
      'has the history of the last ten minutes.\n\n' +
      'An app that runs with `--heapsnapshot-near-heap-limit=1` writes a heap snapshot when its ' +
      'heap is nearly full; `--heap-snapshot-on-oom` does so in Node.js 22 and later. The exporter ' +
      'analyses the snapshot in a side process of bounded memory, and the death names the objects ' +
      'that piled up, and their holders (`holders`). The exporter does not move the file. It ' +
      'searches the working directory of the app and its `--diagnostic-dir`, if it has the same ' +
      'mounts as the app. For a sidecar, mount one volume in both containers. Name the volume in ' +
      '`--diagnostic-dir` of the app and in `--snapshot-dir` of the exporter.',
    '## Reasons',
    table(
      ['reason', 'meaning', 'known from'],
      Object.entries(reasons).map(([reason, { title, known }]) => [`\`${reason}\``, title, known])
    ),
    '## Silence\n\n`memwatch_target_silence_seconds{cause}` names the cause for a target that ' +
      'sends no frames although its process has not ended.',
    table(
      ['cause', 'meaning'],
      Object.entries(silenceCauses).map(([cause, help]) => [`\`${cause}\``, help])
    )
  )

module.exports = { deaths }
