'use strict'

/**
 * A memory bug of Node.js or of a package that a public thread describes.
 * @typedef {object} KnownBug
 * @property {string} id also the name of its case in bench/realworld/leaks
 * @property {string} package `node`, or the name of a package
 * @property {string} affected semver range of the versions that have it
 * @property {'bug' | 'trap'} kind bug: ordinary use leaks; trap: it works as documented, and leaks
 *   in the use that `when` describes
 * @property {string} title
 * @property {string} when the condition, a clause
 * @property {readonly string[]} diagnoses that it causes
 * @property {readonly string[]} fixed first version without it, of each release line; empty where
 *   there is none
 * @property {string | null} workaround null if an upgrade is all
 * @property {string} thread address
 * @property {readonly (readonly string[])[]} suspects groups of builtin modules, functions of V8
 *   and packages: a suspect passes through all of a group when this bug is the cause. A bug with a
 *   larger group is told before those with a part of it
 */

/**
 * @param {Omit<KnownBug, 'kind' | 'fixed' | 'workaround' | 'suspects'> & Partial<KnownBug>} bug
 *   without suspects: its package
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
