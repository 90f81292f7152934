'use strict'

const { reproduced } = require('./index')
const { findKnownBugs, fixedAfter } = require('./match')

/**
 * A known bug of a version that is in use, as the API and `memwatch audit --json` return it.
 * @typedef {object} AuditedBug
 * @property {string} id
 * @property {string} package `node`, or the name of a package
 * @property {string} version that has the bug
 * @property {'bug' | 'trap'} kind bug: ordinary use leaks; trap: the code works as documented, and
 *   one use of it leaks
 * @property {string} title
 * @property {string} when the condition, a clause
 * @property {readonly string[]} diagnoses ids of the diagnoses that the bug causes
 * @property {string | null} fixedIn first newer version without the bug; null if there is none
 * @property {string | null} workaround
 * @property {string} thread address of the public thread
 * @property {string | null} reproducedOn date of the last run that reproduced the bug; null if none
 *   did
 */

/**
 * Known bugs of the versions of a process or project: bugs first, then traps.
 * @param {import('./match').Versions} versions
 * @returns {AuditedBug[]}
 */
function audit (versions) {
  const found = findKnownBugs(versions).map(({ bug, version }) => ({
    id: bug.id,
    package: bug.package,
    version,
    kind: bug.kind,
    title: bug.title,
    when: bug.when,
    diagnoses: bug.diagnoses,
    fixedIn: fixedAfter(bug, version),
    workaround: bug.workaround,
    thread: bug.thread,
    reproducedOn: reproduced[bug.id]?.date ?? null
  }))
  return [...found.filter(({ kind }) => kind === 'bug'), ...found.filter(({ kind }) => kind === 'trap')]
}

module.exports = { audit }
