'use strict'

/** Reads and cuts CHANGELOG.md, which has the form of Keep a Changelog 1.1.0. */

const { REPOSITORY } = require('../packages')

const UNRELEASED = 'Unreleased'
/** Kinds of changes in Keep a Changelog. Artifact Hub uses the same names. */
const KINDS = ['Added', 'Changed', 'Deprecated', 'Removed', 'Fixed', 'Security']

/**
 * @typedef {object} Version of the changelog
 * @property {string} name `Unreleased`, or a version
 * @property {string | undefined} date date such as 2026-11-22; undefined for unreleased changes
 * @property {string} text Markdown below the heading
 * @property {{ kind: string, text: string }[]} changes changes, each on one line
 */

/**
 * @param {string} text Markdown
 * @returns {{ kind: string, text: string }[]}
 */
const readChanges = text =>
  text.split(/^### /m).slice(1).flatMap(section => {
    const [kind, ...lines] = section.split('\n')
    return lines.join('\n').split(/^- /m).slice(1)
      .map(change => ({ kind, text: change.replace(/\s+/g, ' ').trim() }))
  })

/**
 * @param {string} changelog
 * @returns {{ versions: Version[], links: Record<string, string> }} versions in the order of the
 *   file
 */
function readChangelog (changelog) {
  const links = Object.fromEntries(
    [...changelog.matchAll(/^\[([^\]]+)\]: (\S+)$/gm)].map(([, name, url]) => [name, url])
  )
  const versions = changelog.replace(/^\[[^\]]+\]: \S+\n?/gm, '').split(/^## /m).slice(1)
    .map(section => {
      const [heading, ...lines] = section.split('\n')
      const [, name = heading, date] = /^\[([^\]]+)\](?: - (\S+))?$/.exec(heading) ?? []
      const text = lines.join('\n').trim()
      return { name, date, text, changes: readChanges(text) }
    })
  return { versions, links }
}

/**
 * @param {string} changelog
 * @param {string} version
 * @returns {Version}
 * @throws {Error} if the version has no section
 */
function findVersion (changelog, version) {
  const found = readChangelog(changelog).versions.find(({ name }) => name === version)
  if (!found) throw new Error(`CHANGELOG.md: no section for ${version}`)
  return found
}

/**
 * Turns the unreleased changes into those of a version.
 * @param {string} changelog
 * @param {string} version
 * @param {string} date date such as 2026-11-22
 * @returns {string}
 * @throws {Error} if nothing is unreleased
 */
function cutVersion (changelog, version, date) {
  const { versions: [unreleased, previous] } = readChangelog(changelog)
  if (unreleased.changes.length === 0) throw new Error('CHANGELOG.md: nothing is unreleased')
  const compare = (/** @type {string} */ from, /** @type {string} */ to) =>
    `${REPOSITORY}/compare/v${from}...${to}`
  return changelog
    .replace(`## [${UNRELEASED}]\n`, `## [${UNRELEASED}]\n\n## [${version}] - ${date}\n`)
    .replace(
      /^\[Unreleased\]: .*$/m,
      `[${UNRELEASED}]: ${compare(version, 'HEAD')}\n` +
        `[${version}]: ${compare(previous.name, `v${version}`)}`
    )
}

module.exports = { KINDS, UNRELEASED, cutVersion, findVersion, readChangelog }
