'use strict'

const { defaultRules } = require('../../exporter/captures/rules')
const { table } = require('../markdown')
const { page } = require('./page')

/** @param {import('../../exporter/captures/rules').When} when */
function nameCondition (when) {
  if ('diagnosis' in when) return `\`${when.diagnosis}\` ${when.state}`
  if ('runwayBelowSeconds' in when) return `less than ${when.runwayBelowSeconds} s to the limit`
  if ('death' in when) {
    return `a process died by ${when.death.map(reason => `\`${reason}\``).join(' or ')}: ` +
      'captures the next process of its name'
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
    'A rule starts a capture of an app: it names the condition, the kind of capture and the ' +
      'least time between two captures. The built-in rules are on by default. ' +
      '`--auto-captures off` switches all rules off.',
    table(['name', 'condition', 'kind', 'at most', 'once in', 'shows'], rows),
    'A heap profile takes as long as its samples need: up to 30 s in the JS heap, 120 s outside ' +
      'it, and at most half of the time to the limit. One capture runs at a time; only `last-minute` ' +
      'does not wait for captures of other processes. A profile of 15 s and more names its first ' +
      'suspects after a third of the time, and those of the whole time replace them. When a ' +
      'process dies during a heap profile, the exporter keeps the samples of the first third ' +
      '(`isPartial`). `after-death` captures the next process at half the age of the dead one, if ' +
      'the dead process lived for twenty minutes or less. `native-memory-leak-second` takes ' +
      'twice as long as the first heap profile.',
    'While the exporter is overloaded, it requests no captures. A capture for a diagnosis follows ' +
      'later if the diagnosis remains. If it fails or is not answered, it is requested once more, ' +
      'a minute later.',
    '## Rules of your own\n\n`--capture-rules FILE` names a JSON array. The key `captureRules` of ' +
      'the [config file](config.md) may contain the array itself.',
    '```json\n[\n' +
      '  { "name": "long-delays", "what": "cpu_profile", "seconds": 10, "every": "6h",\n' +
      '    "when": { "signal": "longestDelaySeconds", "above": 0.5, "for": "2m" } },\n' +
      '  { "name": "last-minute", "what": "heap_profile", "seconds": 20, "every": "30m",\n' +
      '    "when": { "runwayBelow": "2m" } },\n' +
      '  { "name": "oversized-heap", "off": true }\n]\n```',
    table(['key', 'value'], [
      ['`name`', 'lower-case letters, digits and hyphens. A rule with the name of a built-in rule ' +
        'replaces it'],
      ['`what`', 'a [kind of capture](captures.md); `heap_snapshot` only if the app allows it'],
      ['`every`', 'least time between two captures of one target by this rule; `1h` by default'],
      ['`seconds`', 'longest duration; by default the duration of the kind'],
      ['`off`', '`true` switches off the built-in rule of this name'],
      ['`when.diagnosis`', 'a [diagnosis](diagnoses.md), with `state`: `suspected` or `confirmed`'],
      ['`when.signal`', 'a [signal](metrics.md) with `above` or `below`, in its unit, ' +
        'and `for`, the time that the condition must last'],
      ['`when.runwayBelow`', 'a time: the rule starts when `secondsLeft` of a verdict is less'],
      ['`when.death`', 'one or more [causes of death](deaths.md)']
    ]),
    'An unknown key, diagnosis, signal, kind or cause stops the exporter at start, with the ' +
      'nearest known name.',
    '## Measured\n\n`npm run bench:deaths` runs apps until they die from memory. Then it searches ' +
      'the store and the folder of `--ship-to` for a heap profile that names the leaking line. ' +
      'The exporter saw the process in `/proc` in half of the runs.',
    table(['death', 'Node.js', 'line named'], [
      ['100 to 200 s after the leak began (`--live 90`)', '18, 20, 24, 26', '32 of 32'],
      ['up to 20 s after it began', '20', '0 of 12']
    ]),
    'A leak of few large Buffers gives too few samples: no profile named a leak of one Buffer of ' +
      '4 MiB each 1.6 s. With `MEMWATCH_ALLOW_SNAPSHOT=1`, a rule that makes a `heap_snapshot` ' +
      'finds the holder of the Buffers.'
  )

module.exports = { captureRules }
