'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { heapHeadroom, parseBounded } = require('../data-folder/bounded-json')
const { openRegularFile, readBytes, readRegularFile } = require('../data-folder/regular-file')

/** Size limit of a file; a bundle may be large, and its source map larger. */
const MOST_FILE_BYTES = 16 * 2 ** 20
/**
 * Size limit of an addon that is searched for a word, and size of the pieces in which it is read.
 */
const MOST_SEARCHED_BYTES = 64 * 2 ** 20
const SEARCHED_PIECE_BYTES = 2 ** 20
/** Limits of the files and bytes that are read for one capture. */
const MOST_FILES = 1000
const MOST_BYTES = 64 * 2 ** 20
/** Share of the free heap for texts; parsing them needs more. */
const HEAP_SHARE = 0.25
/** The longest path that Linux accepts: PATH_MAX of limits.h. */
const MOST_PATH_LENGTH = 4096
/** Number of symbolic links that Linux follows at most: path_resolution(7). */
const MOST_LINKS = 40
/** These folders contain no code, and reading some of their files has side effects. */
const KERNEL_FOLDERS = ['proc', 'sys', 'dev']
/**
 * Manifests are readable in any folder: they show only the package of a file, and the agent's
 * package may lie anywhere.
 */
const MANIFEST = 'package.json'
/** Number of a command line's arguments that are checked for scripts. */
const MOST_ARGUMENTS = 32

/**
 * Reads files of one app, by the untrusted file names in its profile. It reads only regular files
 * of bounded size: manifests, and files in the folders of the app's code.
 */
class AppFiles {
  #root
  #folders
  #files = MOST_FILES
  #bytes = Math.min(MOST_BYTES, HEAP_SHARE * heapHeadroom())

  /**
   * @param {string} root of the app's file system, such as /proc/4711/root
   * @param {readonly string[]} [folders] folders with its code, as real paths in that file system;
   *   the whole file system if they are unknown
   */
  constructor (root, folders) {
    this.#root = root
    this.#folders = folders
  }

  /**
   * @param {number} pid of a process of this machine
   * @returns {AppFiles}
   * @throws {Error} if the process has ended, or belongs to another user
   */
  static of (pid) {
    const root = `/proc/${pid}/root`
    return new AppFiles(root, codeFolders(pid, root))
  }

  /**
   * @param {string} file
   * @returns {string | undefined} text of the file; undefined if reading is not allowed or fails,
   *   or if the limit is used up
   */
  text (file) {
    if (!path.isAbsolute(file) || file.length > MOST_PATH_LENGTH || this.#files-- <= 0) {
      return undefined
    }
    try {
      const real = realPath(this.#root, file)
      if (!this.#isCode(real)) return undefined
      const bytes = readRegularFile(path.join(this.#root, real), {
        maxBytes: Math.min(MOST_FILE_BYTES, this.#bytes)
      })
      this.#bytes -= bytes.length
      return bytes.toString('utf8')
    } catch {
      return undefined
    }
  }

  /**
   * Installed versions of packages, from their package.json: in each node_modules that the app's
   * code may load from, and in pnpm's folder of indirect dependencies.
   * @param {readonly string[]} names
   * @returns {Map<string, string[]>} versions of the installed packages
   */
  installedVersions (names) {
    const folders = (this.#folders ?? [])
      .filter(folder => path.basename(folder) === 'node_modules')
      .flatMap(folder => [folder, path.join(folder, '.pnpm', 'node_modules')])
      .filter(folder => fs.existsSync(path.join(this.#root, folder)))
    const found = new Map(names.map(name => [
      name,
      [...new Set(folders)].flatMap(folder => this.packageVersion(path.join(folder, name)) ?? [])
    ]))
    return new Map([...found].filter(([, versions]) => versions.length > 0))
  }

  /**
   * @param {string} folder of a package
   * @returns {string | undefined} undefined if it has no readable package.json
   */
  packageVersion (folder) {
    const text = this.text(path.join(folder, MANIFEST))
    if (text === undefined) return undefined
    try {
      const { version } = parseBounded(text)
      return typeof version === 'string' ? version : undefined
    } catch {
      return undefined // The file is not JSON, or not a manifest.
    }
  }

  /**
   * @param {string} file
   * @param {string} word
   * @returns {boolean} false also if the file may not or cannot be read, or is too large
   */
  contains (file, word) {
    if (!path.isAbsolute(file) || file.length > MOST_PATH_LENGTH || this.#files-- <= 0) return false
    let fd
    try {
      const real = realPath(this.#root, file)
      if (!this.#isCode(real)) return false
      const opened = openRegularFile(path.join(this.#root, real))
      fd = opened.fd
      if (opened.bytes > MOST_SEARCHED_BYTES) return false
      for (let at = 0; at < opened.bytes; at += SEARCHED_PIECE_BYTES) {
        if (readBytes(fd, SEARCHED_PIECE_BYTES + word.length, at).includes(word)) return true
      }
      return false
    } catch {
      return false
    } finally {
      if (fd !== undefined) fs.closeSync(fd)
    }
  }

  /** @param {string} file real path of a file */
  #isCode (file) {
    if (KERNEL_FOLDERS.includes(file.split('/')[1])) return false
    return (
      path.basename(file) === MANIFEST ||
      !this.#folders ||
      this.#folders.some(folder => isBelow(folder, file))
    )
  }
}

/**
 * Folders with the code of a process: the packages of its working directory and of each script in
 * its command line, and node_modules of all folders above. A package is the topmost folder with a
 * manifest, as in a workspace.
 * @param {number} pid
 * @param {string} root
 * @returns {string[]} real paths in its file system
 */
function codeFolders (pid, root) {
  const cwd = withoutRoot(fs.readlinkSync(`/proc/${pid}/cwd`), fs.readlinkSync(root))
  const words = fs
    .readFileSync(`/proc/${pid}/cmdline`, 'utf8')
    .split('\0')
    .slice(1, 1 + MOST_ARGUMENTS)
  const scripts = words.flatMap(word => scriptOf(root, cwd, word) ?? [])
  return [cwd, ...scripts.map(script => path.dirname(script))].flatMap(folder => {
    const above = foldersAbove(folder)
    const packages = above.filter(parent => isManifest(root, path.join(parent, MANIFEST)))
    // A root folder without a manifest is not a package, even if it is the working directory.
    const own = packages.at(-1) ?? (folder === '/' ? [] : folder)
    return [own, ...above.map(parent => path.join(parent, 'node_modules'))].flat()
  }).concat(scripts)
}

/**
 * Removes the root folder from a path: the process may have another root than this process, as
 * after chroot(2).
 * @param {string} file
 * @param {string} root
 */
const withoutRoot = (file, root) =>
  root !== '/' && isBelow(root, file) ? file.slice(root.length) || '/' : file

/**
 * @param {string} root
 * @param {string} cwd
 * @param {string} word of a command line
 * @returns {string | undefined} real path of the script; undefined if the word names no script
 */
function scriptOf (root, cwd, word) {
  if (word.startsWith('-') || word.length > MOST_PATH_LENGTH) return undefined
  for (const name of [word, `${word}.js`]) {
    try {
      const real = realPath(root, path.resolve(cwd, name))
      if (/\.[cm]?[jt]sx?$/.test(name) && fs.lstatSync(path.join(root, real)).isFile()) return real
    } catch {} // The word is an argument of another kind.
  }
}

/**
 * @param {string} root
 * @param {string} file
 */
const isManifest = (root, file) =>
  fs.lstatSync(path.join(root, file), { throwIfNoEntry: false })?.isFile() ?? false

/**
 * @param {string} folder absolute
 * @returns {string[]} the folder itself and all folders above it, up to /
 */
function foldersAbove (folder) {
  const parent = path.dirname(folder)
  return parent === folder ? [folder] : [folder, ...foldersAbove(parent)]
}

/**
 * @param {string} folder
 * @param {string} file
 */
const isBelow = (folder, file) =>
  file === folder || file.startsWith(folder === '/' ? '/' : `${folder}/`)

/**
 * Resolves the links of a path as the app itself would. Through /proc/PID/root the kernel would
 * resolve an absolute link in the file system of this process, not of the app.
 * @param {string} root
 * @param {string} file absolute
 * @returns {string} absolute path in the same file system
 * @throws {Error} if it does not exist
 */
function realPath (root, file) {
  const names = file.split('/')
  let real = ''
  let links = 0
  while (names.length > 0) {
    const name = /** @type {string} */ (names.shift())
    if (name === '' || name === '.') continue
    if (name === '..') {
      real = real.slice(0, Math.max(0, real.lastIndexOf('/')))
      continue
    }
    const next = `${real}/${name}`
    if (!fs.lstatSync(path.join(root, next)).isSymbolicLink()) {
      real = next
      continue
    }
    if (++links > MOST_LINKS) throw new Error(`${file}: too many links`)
    const target = fs.readlinkSync(path.join(root, next))
    if (path.isAbsolute(target)) real = ''
    names.unshift(...target.split('/'))
  }
  return real || '/'
}

module.exports = { AppFiles, MOST_FILE_BYTES, MOST_PATH_LENGTH }
