'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { Command } = require('commander')
const { audit } = require('@memwatch/engine/known-bugs/audit')
const { versionText } = require('@memwatch/engine/known-bugs/match')
const { readRegularFile } = require('@memwatch/exporter/data-folder/regular-file')
const { withApiOptions, callApi } = require('./program/api')
const { pathSegment } = require('./text/path-segment')
const { readLockfile } = require('./audit/lockfile')
const { out } = require('./program/output')
const { wrap } = require('./text/wrap')
const { UsageError } = require('./program/usage-error')

/** @typedef {import('@memwatch/engine/known-bugs/audit').AuditedBug} AuditedBug */

/**
 * @typedef {object} Audit
 * @property {1} schema
 * @property {string} of path of the lockfile, or name of the target
 * @property {string} node version
 * @property {string} nodeFrom the origin of that version
 * @property {number | null} packages number of packages read; null if none is readable
 * @property {{ name: string, version: string | null }[] | null} addons addons that the target has
 *   loaded; null if unknown, and for a lockfile
 * @property {AuditedBug[]} bugs
 */

const FOUND_STATUS = 3
/** Largest width in columns: longer lines are hard to read. */
const WIDTH = 100
/** Pattern of names that only files have; `@scope/app` may be a target. */
const FILE = /^\.{0,2}\/|\.(json|ya?ml|lock)$/
/** Files that pin the Node.js version of a folder. */
const NODE_FILES = ['.node-version', '.nvmrc']
const MOST_NODE_FILE_BYTES = 4096

const command = withApiOptions(new Command('audit'))
  .description(
    'Name known memory bugs of Node.js and of packages, in a lockfile or a running target.'
  )
  .argument(
    '[target]',
    'a lockfile of npm, pnpm or Yarn, a folder with a lockfile (default: this folder), or the ' +
      'name of a target in /api/v1/targets'
  )
  .option('--node <VERSION>', 'Node.js that runs a lockfile, such as 24.17.0 (default: ' +
    '.node-version, .nvmrc, else the one that runs memwatch)')
  .option('--json', 'print the known bugs as JSON on stdout, and nothing else')
  .allowExcessArguments(false)
  .addHelpText(
    'after',
    `
The bugs are those of docs/known-bugs.md. A trap works as documented and leaks only in a certain
use; the exit status ignores traps. For a target, the exporter reads the installed packages, if it
can see the files of the process.

Exit status: 0; 3 when a version with a known bug is in use; 2 when a file or an option is invalid,
the exporter cannot be reached, or the target does not exist.

Examples:
  $ memwatch audit
  $ memwatch audit package-lock.json --node 24.17.0
  $ memwatch audit services/shop
  $ memwatch audit shop
  $ memwatch audit --json | jq -r '.bugs[] | select(.kind == "bug") | .thread'`
  )
  .action(async (what, given) => {
    const found = fs.existsSync(what ?? '.')
      ? auditFolder(what ?? '.', given)
      : await auditTarget(what, given)
    if (given.json) out.json(found, 2)
    else out.say(...render(found, { width: Math.min(out.columns || WIDTH, WIDTH) }))
    if (found.bugs.some(({ kind }) => kind === 'bug')) process.exitCode = FOUND_STATUS
  })

/**
 * @param {string} where a lockfile, or a folder with one
 * @param {{ node?: string }} given
 * @returns {Audit}
 * @throws {UsageError}
 */
function auditFolder (where, given) {
  const { file, packages } = readLockfile(where)
  const { node, nodeFrom } = nodeOf(path.dirname(file), given)
  return {
    schema: 1,
    of: file,
    node,
    nodeFrom,
    packages: packages.size,
    addons: null,
    bugs: audit({ node, packages })
  }
}

/**
 * @param {string} folder
 * @param {{ node?: string }} given
 * @returns {Pick<Audit, 'node' | 'nodeFrom'>}
 * @throws {UsageError}
 */
function nodeOf (folder, given) {
  if (given.node !== undefined) {
    const node = given.node.replace(/^v/, '')
    if (!isVersion(node)) {
      throw new UsageError(`--node: expected a version such as 24.17.0, got ${given.node}`)
    }
    return { node, nodeFrom: '--node' }
  }
  for (const name of NODE_FILES) {
    const node = readNodeFile(path.join(folder, name))
    if (node !== undefined) return { node, nodeFrom: name }
  }
  return { node: process.versions.node, nodeFrom: 'runs memwatch; --node names another' }
}

/** @param {string} text */
const isVersion = text => /^\d{1,3}\.\d{1,3}\.\d{1,3}(-[\w.-]{1,32})?$/.test(text)

/**
 * @param {string} file
 * @returns {string | undefined} version; undefined if the file is absent or contains no exact
 *   version
 */
function readNodeFile (file) {
  try {
    const bytes = readRegularFile(file, { maxBytes: MOST_NODE_FILE_BYTES })
    const text = bytes.toString('utf8').trim().replace(/^v/, '')
    return isVersion(text) ? text : undefined
  } catch {
    return undefined // The file is absent, or not a regular file.
  }
}

/**
 * @param {string} name
 * @param {import('./program/api').ApiOptions & { node?: string }} given
 * @returns {Promise<Audit>}
 * @throws {UsageError}
 */
async function auditTarget (name, given) {
  if (given.node !== undefined) {
    throw new UsageError(`--node: expected no version for the target ${name}, which reports its ` +
      'own; no file has this name')
  }
  // The name looks like a file name, so no exporter has a target of this name.
  if (FILE.test(name)) {
    throw new UsageError(`cannot read ${name}: no such file`)
  }
  const { body, refused } = await callApi(given, `targets/${pathSegment(name)}/known-bugs`)
  if (refused) throw new UsageError(`${name}: no such file, and ${refused}`)
  return {
    schema: 1,
    of: body.target,
    node: body.node,
    nodeFrom: 'runs the target',
    packages: body.packages?.length ?? null,
    addons: body.addons,
    bugs: body.bugs
  }
}

/**
 * @param {Audit} found
 * @param {{ width: number }} options
 * @returns {import('./text/terminal').Line[]}
 */
function render ({ of, node, nodeFrom, packages, addons, bugs: all }, { width }) {
  const bugs = all.filter(({ kind }) => kind === 'bug')
  const traps = all.filter(({ kind }) => kind === 'trap')
  const read = packages === null ? 'its packages cannot be read from here' : `${packages} packages`
  const count = `${bugs.length} known ${bugs.length === 1 ? 'bug' : 'bugs'}`
  const loaded = (addons ?? []).map(({ name, version }) => `${name} ${version ?? ''}`.trim())
  return [
    ...wrap(`${of}: Node.js ${node} (${nodeFrom}), ${read}: ${count}`, width)
      .map(text => ({ text, style: /** @type {const} */ ('bold') })),
    ...loaded.length > 0 ? wrap(`Loaded addons: ${loaded.join(', ')}`, width) : [],
    ...bugs.flatMap(bug => describe(bug, width)),
    ...traps.length > 0 ? ['', 'Traps: they work as documented, and leak only in this use.'] : [],
    ...traps.flatMap(bug => describe(bug, width))
  ]
}

/**
 * @param {AuditedBug} bug
 * @param {number} width
 * @returns {import('./text/terminal').Line[]}
 */
function describe (bug, width) {
  const { package: name, version, kind, title, when, diagnoses, fixedIn, workaround, thread } = bug
  const fixed = fixedIn !== null ? `Fixed in ${versionText(name, fixedIn)}.` : ''
  const unfixed = fixedIn === null && kind === 'bug' ? 'Not fixed.' : ''
  const around = workaround === null ? '' : `Workaround: ${workaround}.`
  const style = /** @type {'yellow' | 'bold'} */ (kind === 'bug' ? 'yellow' : 'bold')
  return [
    '',
    ...wrap(`${title} (${versionText(name, version)})`, width).map(text => ({ text, style })),
    ...wrap(`When ${when}. Causes ${diagnoses.join(', ')}.`, width, 2),
    ...wrap([fixed, unfixed, around].filter(Boolean).join(' '), width, 2),
    ...wrap(thread, width, 2)
  ]
}

module.exports = { command, auditFolder, render }
