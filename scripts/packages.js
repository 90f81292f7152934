'use strict'

/**
 * The npm packages of this repository: their names, and the common parts of their package.json
 * files. `npm run generate` writes both into each package.json.
 */

const fs = require('node:fs')
const path = require('node:path')
const { execFileSync } = require('node:child_process')
const { parseArgs } = require('node:util')

const ROOT = path.join(__dirname, '..')
/** Scope of every package. `node scripts/packages.js --scope @other` replaces it in all files. */
const SCOPE = '@memwatch'
const REPOSITORY = 'https://github.com/memwatch/memwatch'
/** Registry of the image and the chart, with its namespace. */
const REGISTRY = 'ghcr.io/memwatch'
const IMAGE = `${REGISTRY}/memwatch`
const CHARTS = `${REGISTRY}/charts`

/** @type {{ version: string, license: string, workspaces: string[] }} */
const { version, license, workspaces } = readJson('package.json')
/** @type {string[]} folder of each package, below the root */
const folders = workspaces

/** @param {string} folder */
const nameOf = folder => `${SCOPE}/${folder}`

/** @param {string} file path below the root */
function readJson (file) {
  return JSON.parse(fs.readFileSync(path.join(ROOT, file), 'utf8'))
}

/**
 * Sets the version of memwatch's own packages, because packages of one version belong together.
 * @param {Record<string, string>} [dependencies]
 */
const withOwnVersion = dependencies =>
  dependencies && Object.fromEntries(
    Object.entries(dependencies).map(([name, wanted]) => [
      name,
      name.startsWith(`${SCOPE}/`) ? version : wanted
    ])
  )

/**
 * @param {string} folder
 * @returns {string} content of its package.json, with name, version and addresses from this file
 */
function manifest (folder) {
  const own = readJson(`${folder}/package.json`)
  const content = {
    ...own,
    name: nameOf(folder),
    version,
    license,
    homepage: `${REPOSITORY}#readme`,
    bugs: `${REPOSITORY}/issues`,
    repository: { type: 'git', url: `git+${REPOSITORY}.git`, directory: folder },
    publishConfig: { access: 'public' }
  }
  for (const kind of ['dependencies', 'optionalDependencies', 'peerDependencies']) {
    if (own[kind]) content[kind] = withOwnVersion(own[kind])
  }
  return JSON.stringify(content, null, 2) + '\n'
}

/** Each package contains the text of the licence, as the licence demands. */
const licence = () => fs.readFileSync(path.join(ROOT, 'LICENSE'), 'utf8')

/** @type {Record<string, () => string>} contents by file */
const generated = Object.fromEntries(folders.flatMap(folder => [
  [`${folder}/package.json`, () => manifest(folder)],
  [`${folder}/LICENSE`, licence]
]))

/**
 * @param {string} text of any file
 * @param {string} scope scope with its @
 * @returns {string} text with the names of memwatch's packages in that scope
 */
const withScope = (text, scope) => text.replace(new RegExp(`${SCOPE}(?=[/'])`, 'g'), scope)

/** @param {string} scope */
function rename (scope) {
  const tracked = execFileSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8' })
  for (const name of tracked.split('\0').filter(Boolean)) {
    const file = path.join(ROOT, name)
    const content = fs.readFileSync(file)
    if (!content.includes(SCOPE) || content.includes(0)) continue
    fs.writeFileSync(file, withScope(content.toString(), scope))
  }
}

if (require.main === module) {
  const { scope } = parseArgs({ options: { scope: { type: 'string' } } }).values
  if (!scope || !/^@[a-z0-9][a-z0-9._-]*$/.test(scope)) {
    throw new Error('expected --scope @NAME')
  }
  rename(scope)
  console.log('run npm install, npm run generate and npm test')
}

module.exports = {
  CHARTS, IMAGE, REGISTRY, REPOSITORY, SCOPE, folders, generated, nameOf, version, withScope
}
