'use strict'

/** Lists the places that contain the version of a release, and changes it in all of them. */

const fs = require('node:fs')
const path = require('node:path')
const { folders, IMAGE } = require('../packages')
const { readChangelog, UNRELEASED } = require('./changelog')

const ROOT = path.join(__dirname, '../..')
const VERSION = /^\d+\.\d+\.\d+(-[0-9a-z.-]+)?$/
const OWN = String.raw`(?<version>\d+\.\d+\.\d+(?:-[0-9a-z.-]+)?)`

/**
 * @typedef {object} Place
 * @property {string} file
 * @property {RegExp} pattern global, with the group `version`; each match is the version
 */

/** @type {readonly Place[]} */
const PLACES = [
  ...['.', ...folders].map(folder => ({
    file: path.join(folder, 'package.json'),
    pattern: new RegExp(`(?<=^  "version": ")${OWN}`, 'gm')
  })),
  {
    file: 'deploy/helm/memwatch/Chart.yaml',
    pattern: new RegExp(`(?<=^(?:version|appVersion): )${OWN}`, 'gm')
  },
  { file: 'Dockerfile', pattern: new RegExp(`(?<=^ARG VERSION=)${OWN}`, 'gm') },
  { file: 'deploy/README.md', pattern: new RegExp(`(?<=\\?ref=v)${OWN}`, 'g') },
  ...['docs/quick-start.md', 'deploy/sidecar.yaml', 'deploy/kustomize/node/node.yaml'].map(file => ({
    file,
    pattern: new RegExp(`(?<=${IMAGE}:)${OWN}`, 'g')
  }))
]

/** @param {string} file */
const read = file => fs.readFileSync(path.join(ROOT, file), 'utf8')

/**
 * @param {string} [tag] tag of the release, such as v1.2.3; without it the places must only agree
 *   with each other
 * @returns {string[]} reasons against the release of the version; empty if there are none
 */
function findVersionProblems (tag) {
  const { version } = JSON.parse(read('package.json'))
  const [unreleased, newest] = readChangelog(read('CHANGELOG.md')).versions
  const problems = PLACES.flatMap(({ file, pattern }) => {
    const found = [...read(file).matchAll(pattern)].map(([match]) => match)
    if (found.length === 0) return [`${file}: no version`]
    return found.filter(other => other !== version).map(other => `${file}: ${other}, not ${version}`)
  })
  if (newest.name !== version) {
    problems.push(`CHANGELOG.md: the newest version is ${newest.name}, not ${version}`)
  }
  if (tag === undefined) return problems
  if (tag !== `v${version}`) problems.push(`tag ${tag}: the packages have version ${version}`)
  if (unreleased.name !== UNRELEASED || unreleased.changes.length > 0) {
    problems.push('CHANGELOG.md: changes are unreleased; npm run release:prepare makes a version')
  }
  return problems
}

/**
 * @param {Place} place
 * @param {string} text text of the file
 * @param {string} version
 */
const withVersion = ({ pattern }, text, version) => text.replace(pattern, version)

/** @param {string} version */
function writeVersion (version) {
  for (const place of PLACES) {
    fs.writeFileSync(path.join(ROOT, place.file), withVersion(place, read(place.file), version))
  }
}

module.exports = { PLACES, VERSION, findVersionProblems, withVersion, writeVersion }
