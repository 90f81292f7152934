'use strict'

/**
 * A memory bug of Node.js or of a package, described in a public thread.
 * @typedef {object} KnownBug
 * @property {string} id also the name of its case in bench/realworld/leaks
 * @property {string} package `node`, or the name of a package
 * @property {string} affected semver range of the versions that have the bug
 * @property {'bug' | 'trap'} kind bug: ordinary use leaks; trap: the code works as documented, and
 *   the use that `when` describes leaks
 * @property {string} title
 * @property {string} when the condition, a clause
 * @property {readonly string[]} diagnoses ids of the diagnoses that the bug causes
 * @property {readonly string[]} fixed first version without the bug on each release line; empty if
 *   there is none
 * @property {string | null} workaround null if an upgrade is the only remedy
 * @property {string} thread address of the public thread
 * @property {readonly (readonly string[])[]} suspects groups of builtin modules, functions of V8
 *   and packages: a suspect passes through all of a group when this bug is the cause. Of the bugs
 *   with such a suspect, those with the largest group are reported
 */

/**
 * @param {Omit<KnownBug, 'kind' | 'fixed' | 'workaround' | 'suspects'> & Partial<KnownBug>} bug the
 *   default of `suspects` is the package itself
 * @returns {Readonly<KnownBug>}
 */
const defineKnownBug = bug => Object.freeze({
  kind: /** @type {const} */ ('bug'),
  fixed: [],
  workaround: null,
  suspects: [[bug.package]],
  ...bug
})

module.exports = { defineKnownBug }
