'use strict'

const { knownBugs: all, reproduced } = require('../../engine/known-bugs')
const { threadName, versionText } = require('../../engine/known-bugs/match')
const { table } = require('../markdown')
const { page } = require('./page')

const HEAD = [
  'bug', 'affected', 'leaks when', 'diagnosis', 'fixed in', 'workaround', 'seen at', 'not at', 'on'
]

/** @param {import('../../engine/known-bugs/define-known-bug').KnownBug} bug */
function rowOf (bug) {
  const { id, package: name, affected, title, when, diagnoses, fixed, workaround, thread } = bug
  const seen = reproduced[id]
  return [
    `<a id="${id}"></a>${title} ([${threadName(thread)}](${thread}))`,
    `${versionText(name, '')}\`${affected}\``,
    when,
    diagnoses.map(diagnosis => `\`${diagnosis}\``).join(', '),
    fixed.join(', ') || '–',
    workaround ?? '–',
    ...seen
      ? [seen.leaky + (seen.likely ? ', suspect named' : ''), seen.fixed, seen.date]
      : ['not reproduced', '–', '–']
  ]
}

/** @param {'bug' | 'trap'} kind */
const rowsOf = kind => table(HEAD, all.filter(bug => bug.kind === kind).map(rowOf))

const knownBugs = () => {
  const dates = all.flatMap(({ id }) => reproduced[id]?.date ?? []).sort()
  return page(
    'Known bugs',
    `memwatch knows ${all.length} published memory bugs of Node.js and of packages, each with a ` +
      'public thread. A verdict names those of the versions in use that cause its diagnosis. One ' +
      'is called likely when a suspect leads to its code; otherwise it is only known for the ' +
      'version. `memwatch audit` names the bugs of a lockfile or of a running target ' +
      '([options](commands.md#audit)).\n\n' +
      `\`npm run bench:known-bugs\` ran ${dates.length} of them, between ${dates[0]} and ` +
      `${dates.at(-1)}: a verdict named each at the version under "seen at", and none at the ` +
      'version or in the use under "not at". "Fixed in" is the first version that was tried and ' +
      'does not leak; an earlier one may not leak either.',
    '## Bugs',
    rowsOf('bug'),
    '## Traps\n\nThey work as documented, and leak in this use only. A verdict names a trap when a ' +
      'suspect leads there, or when it has no suspects and the package is installed. `memwatch ' +
      'audit` lists them, and they set no exit status.',
    rowsOf('trap'),
    '## To add one\n\nA row in `engine/known-bugs/`, a case of the same name in ' +
      '`bench/realworld/leaks/`, and `npm run bench:known-bugs -- --only ID`.'
  )
}

module.exports = { knownBugs }
