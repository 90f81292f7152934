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
      'public thread. A verdict names the bugs of the versions in use that can cause its ' +
      'diagnosis. It calls a bug likely if a suspect leads to the code of the bug; otherwise it ' +
      'says that the bug is known for the version. `memwatch audit` names the bugs of a lockfile ' +
      'or of a running target ([options](commands.md#audit)).\n\n' +
      `\`npm run bench:known-bugs\` ran ${dates.length} of them, between ${dates[0]} and ` +
      `${dates.at(-1)}. A verdict named each bug at the version under "seen at", and none at the ` +
      'version or use under "not at". "Fixed in" is the first tested version that does not leak; ' +
      'an untested earlier version may also be free of the bug.',
    '## Bugs',
    rowsOf('bug'),
    '## Traps\n\nA trap is code that works as documented and leaks only in one kind of use. A ' +
      'verdict names a trap if a suspect leads to it, or if the verdict has no suspects and the ' +
      'package is installed. `memwatch audit` lists traps, but its exit status ignores them.',
    rowsOf('trap'),
    '## Add a bug\n\nAdd a row to `engine/known-bugs/` and a case of the same name to ' +
      '`bench/realworld/leaks/`, then run `npm run bench:known-bugs -- --only ID`.'
  )
}

module.exports = { knownBugs }
