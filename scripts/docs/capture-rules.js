'use strict'

const { defaultRules } = require('../../exporter/captures/rules')
const { table } = require('../markdown')
const { page } = require('./page')

/** @param {import('../../exporter/captures/rules').When} when */
function nameCondition (when) {
  if ('diagnosis' in when) return `\`${when.diagnosis}\` ${when.state}`
  if ('runwayBelowSeconds' in when) return `less than ${when.runwayBelowSeconds} s to the limit`
  if ('death' in when) {
    return `died: ${when.death.map(reason => `\`${reason}\``).join(' or ')}; the next one is captured`
  }
  return `\`${when.signal}\``
}

const rows = defaultRules.map(({ name, when, what, seconds, everySeconds, why = '' }) => [
  `\`${name}\``,
  nameCondition(when),
  `\`${what}\``,
  seconds === undefined ? '' : `${seconds} s`,
  `${everySeconds / 3600} h`,
  why
])

const captureRules = () =>
  page(
    'Capture rules',
    'A rule says when the exporter captures an app, by which kind of capture, and how often at ' +
      'most. The built-in rules need no setting; `--auto-captures off` switches all of them off.',
    table(['name', 'when', 'what', 'at most', 'every', 'shows'], rows),
    'A heap profile takes as long as its samples need: up to 30 s in the JS heap, 120 s outside ' +
      'it, and at most half of the time to the limit. One capture runs at a time; only `last-minute` ' +
      'does not wait for captures of other processes. When a process dies during a heap ' +
      'profile, the reading of its first third is kept (`isPartial`). `after-death` begins at ' +
      'half of the age that the dead process reached, if that was twenty minutes or less.',
    '## Rules of your own\n\n`--capture-rules FILE` names a JSON array. The key `captureRules` of ' +
      'the [config file](config.md) may hold that array itself.',
    '```json\n[\n' +
      '  { "name": "long-delays", "what": "cpu_profile", "seconds": 10, "every": "6h",\n' +
      '    "when": { "signal": "longestDelaySeconds", "above": 0.5, "for": "2m" } },\n' +
      '  { "name": "last-minute", "what": "heap_profile", "seconds": 20, "every": "30m",\n' +
      '    "when": { "runwayBelow": "2m" } },\n' +
      '  { "name": "oversized-heap", "off": true }\n]\n```',
    table(['key', 'value'], [
      ['`name`', 'lower-case letters, digits and hyphens. The name of a built-in rule replaces it'],
      ['`what`', 'a [kind of capture](captures.md); `heap_snapshot` only where the app allows it'],
      ['`every`', 'least time between two captures of one target by this rule; `1h` by default'],
      ['`seconds`', "longest duration; the kind's own by default"],
      ['`off`', '`true` switches off the built-in rule of this name'],
      ['`when.diagnosis`', 'a [diagnosis](diagnoses.md), with `state`: `suspected` or `confirmed`'],
      ['`when.signal`', 'a [signal](metrics.md) with `above` or `below`, in its unit, ' +
        'and `for`, a time'],
      ['`when.runwayBelow`', 'a time: `secondsLeft` of a verdict is less'],
      ['`when.death`', 'one or more [causes of death](deaths.md)']
    ]),
    'An unknown key, diagnosis, signal, kind or cause stops the exporter at start, with the ' +
      'nearest known name.',
    '## Measured\n\n`npm run bench:deaths` stages deaths from memory, and looks for a heap profile ' +
      'that names the leaking line in the store and in the folder of `--ship-to`. The exporter ' +
      'saw the process in `/proc` in one half of the runs.',
    table(['death', 'Node.js', 'named'], [
      ['100 to 200 s after the leak began (`--live 90`)', '18, 20, 24, 26', '32 of 32'],
      ['up to 20 s after it began', '20', '0 of 12']
    ]),
    'A few large Buffers give too few samples: no profile named a leak of 4 MiB each 1.6 s. With ' +
      '`MEMWATCH_ALLOW_SNAPSHOT=1`, a rule that makes a `heap_snapshot` finds their holder.'
  )

module.exports = { captureRules }
