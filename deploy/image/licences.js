'use strict'

/**
 * `npm query '*' | node licences.js`: prints one line for each installed package, with its licence
 * and the file with the text of the licence. It ends with 1 if a package names no licence, because
 * the image must contain only redistributable packages.
 */

const fs = require('node:fs')
const path = require('node:path')

/**
 * @typedef {{ name: string, version: string, license?: string | { type: string }, path: string,
 *   location: string }} Package package in the form of npm query
 */

/**
 * @param {Package} package_
 * @returns {string | undefined} SPDX identifier of the licence
 */
const licenceOf = ({ license }) => typeof license === 'object' ? license.type : license

/**
 * @param {string} folder
 * @returns {string | undefined} name of the file with the text of the licence
 */
const textIn = folder => fs.readdirSync(folder).find(name => /^(licen[cs]e|copying)/i.test(name))

/** @type {Package[]} */
const packages = JSON.parse(fs.readFileSync(0, 'utf8'))
const unnamed = packages.filter(package_ => !licenceOf(package_))
for (const { name, version } of unnamed) console.error(`${name}@${version} names no licence`)
const lines = packages.map(package_ => {
  const text = textIn(package_.path)
  return [
    `${package_.name}@${package_.version}`,
    licenceOf(package_),
    ...(text ? [path.join(package_.location, text)] : [])
  ].join('\t')
})
console.log([...new Set(lines)].sort().join('\n'))
process.exitCode = unnamed.length > 0 ? 1 : 0
