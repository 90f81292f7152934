'use strict'

const { createHash, randomBytes } = require('node:crypto')
const fs = require('node:fs')
const path = require('node:path')
const { Command } = require('commander')
const { out } = require('./program/output')
const { UsageError } = require('./program/usage-error')

/** Packages, and their folders below the agent's folder. */
const PACKAGES = Object.freeze([
  { name: '@memwatch/agent', at: '.' },
  // The agent uses this package's GC hooks unless MEMWATCH_GC_HOOKS is off, and its statistics of
  // malloc if MEMWATCH_ALLOCATOR_ACCESS allows it.
  { name: '@memwatch/allocator', at: 'node_modules/@memwatch/allocator', optional: true }
])
/** Files of a package that an app does not need. */
const LEFT_OUT = /^(node_modules|.*\.(c|h|sh|md|d\.ts))$/
const TOKEN_BYTES = 32
/** Error codes that are explained by a sentence about the path. @type {Record<string, string>} */
const REASONS = Object.freeze({
  ENOENT: 'no such folder; create it first',
  ENOTDIR: 'the path is not a folder',
  EACCES: 'this user may not write there',
  EROFS: 'the file system is mounted read-only'
})

const command = new Command('install-agent')
  .description(
    'Copy the agent into a folder that an app mounts, as an init container does. The app ' +
      'requires FOLDER/agent/index.js.'
  )
  .argument('<folder>', 'an existing folder; all users may read the copied files')
  .option(
    '--no-token',
    'create no FOLDER/token; agents of other users then accept no commands'
  )
  .allowExcessArguments(false)
  .addHelpText(
    'after',
    `
FOLDER/agent is a link to a folder of this version. An update replaces the link at once; running
apps keep their files. install-agent creates FOLDER/token once, readable for this user and group.
Agents accept commands from an exporter with the same MEMWATCH_TOKEN_FILE.

Exit status: 0; 2 when the folder is not writable.

Examples:
  $ memwatch install-agent /run/memwatch
  $ MEMWATCH_SOCKET=/run/memwatch/exporter.sock node -r /run/memwatch/agent/index.js app.js`
  )
  .action((folder, { token }) => {
    try {
      const { version, link } = installAgent(path.resolve(folder))
      out.say(`${link}/index.js: agent ${version}`)
      if (token) out.say(makeToken(path.resolve(folder)))
    } catch (error) {
      const { syscall, code, message } = /** @type {NodeJS.ErrnoException} */ (error)
      if (!syscall) throw error
      throw new UsageError(`<folder>: cannot write to ${folder}: ${REASONS[code ?? ''] ?? message}`)
    }
  })

/**
 * @param {string} folder absolute path
 * @returns {{ version: string, link: string }} link: FOLDER/agent
 * @throws {Error} error of the file system; existing files are unchanged
 */
function installAgent (folder) {
  const files = PACKAGES.flatMap(filesOf)
  const hash = createHash('sha256')
  for (const { at, content } of files) hash.update(`${at}\0${content.length}\0`).update(content)
  const { version } = require('@memwatch/agent/package.json')
  const name = `agent-${version}-${hash.digest('hex').slice(0, 12)}`
  if (!fs.existsSync(path.join(folder, name))) {
    const begun = fs.mkdtempSync(path.join(folder, '.agent-'))
    for (const { at, content } of files) write(path.join(begun, at), content)
    openFolders(begun)
    fs.renameSync(begun, path.join(folder, name))
  }
  const link = path.join(folder, 'agent')
  const next = path.join(folder, `.agent-${process.pid}-${randomBytes(4).toString('hex')}`)
  fs.symlinkSync(name, next)
  fs.renameSync(next, link)
  return { version, link }
}

/**
 * @param {typeof PACKAGES[number]} of
 * @returns {{ at: string, content: Buffer }[]} contents by path, in a fixed order
 */
function filesOf ({ name, at, optional }) {
  let root
  try {
    root = path.dirname(require.resolve(`${name}/package.json`))
  } catch (error) {
    if (optional) return []
    throw error
  }
  const files = /** @type {{ at: string, content: Buffer }[]} */ ([])
  const walk = (/** @type {string} */ below) => {
    for (const entry of fs
      .readdirSync(path.join(root, below), { withFileTypes: true })
      .sort((a, b) => (a.name < b.name ? -1 : 1))) {
      if (LEFT_OUT.test(entry.name)) continue
      const inside = path.join(below, entry.name)
      if (entry.isDirectory()) walk(inside)
      else {
        files.push({ at: path.join(at, inside), content: fs.readFileSync(path.join(root, inside)) })
      }
    }
  }
  walk('.')
  return files
}

/**
 * Writes a file that every user may read, whatever the umask.
 * @param {string} file
 * @param {Buffer} content
 */
function write (file, content) {
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, content)
  fs.chmodSync(file, 0o444)
}

/** @param {string} folder */
function openFolders (folder) {
  fs.chmodSync(folder, 0o755)
  for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) openFolders(path.join(folder, entry.name))
  }
}

/**
 * Creates a token, unless there is one already: running agents use it.
 * @param {string} folder absolute
 * @returns {string} path of the token file
 */
function makeToken (folder) {
  const file = path.join(folder, 'token')
  if (fs.existsSync(file)) return file
  const begun = path.join(folder, `.token-${process.pid}`)
  fs.writeFileSync(begun, randomBytes(TOKEN_BYTES).toString('base64url') + '\n', { mode: 0o440 })
  fs.chmodSync(begun, 0o440)
  fs.renameSync(begun, file)
  return file
}

module.exports = { command, installAgent, makeToken }
