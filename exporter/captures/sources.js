'use strict'

const path = require('node:path')
const {
  GREATEST_LOWER_BOUND,
  LEAST_UPPER_BOUND,
  TraceMap,
  originalPositionFor
} = require('@jridgewell/trace-mapping')
const { parseBounded } = require('../data-folder/bounded-json')
const { name: AGENT } = require('@memwatch/agent/package.json')
const { originOf } = require('@memwatch/engine/text/code-owner')
const { Witness } = require('../process/witness')
const { AppFiles, MOST_PATH_LENGTH } = require('./app-files')

/** Marker before the URL of a source map, in the last line of a file. */
const MAP = 'sourceMappingURL='
const INLINE_MAP = /^data:application\/json[^,]{0,100};base64,/

/**
 * Readable files of a target's app. The app runs on the same machine, or in another container with
 * a shared process namespace, as the same user. The content of the files is only used to find
 * positions in the code.
 */
class Sources {
  #files
  /** @type {Map<string, string | undefined>} */
  #texts = new Map()
  /** @type {Map<string, { map: InstanceType<typeof TraceMap>, file: string } | undefined>} */
  #maps = new Map()
  /** @type {Map<string, { folder: string, name: unknown } | undefined>} */
  #packages = new Map()

  /** @param {AppFiles | undefined} files files of the app; undefined if they are not readable */
  constructor (files) {
    this.#files = files
  }

  /**
   * @param {import('@memwatch/agent/protocol/frame').Hello} hello
   * @returns {Sources}
   */
  static of (hello) {
    // The platform that a target reports is not trusted.
    if (process.platform !== 'linux') {
      return new Sources(hello.platform === process.platform ? new AppFiles('/') : undefined)
    }
    try {
      return new Sources(Witness.of(hello) ? AppFiles.of(hello.pid) : undefined)
    } catch {
      return new Sources(undefined) // The process is gone, or belongs to another user.
    }
  }

  /** Files of this machine. @returns {Sources} */
  static here () {
    return new Sources(new AppFiles('/'))
  }

  /**
   * @param {string} file
   * @param {number} first from 1
   * @param {number} [last]
   * @returns {string[]} lines of the file; empty if it is unreadable
   */
  lines (file, first, last = first) {
    const text = this.text(file) ?? ''
    /** @type {string[]} */
    const lines = []
    let at = 0
    for (let number = 1; number <= last && at < text.length; number++) {
      const found = text.indexOf('\n', at)
      const end = found < 0 ? text.length : found
      if (number >= first) lines.push(text.slice(at, end))
      at = end + 1
    }
    return lines
  }

  /**
   * @param {string} file
   * @returns {string | undefined} text of the file; undefined if it cannot be read
   */
  text (file) {
    if (file.length > MOST_PATH_LENGTH) return undefined
    if (!this.#texts.has(file)) this.#texts.set(file, this.#files?.text(file))
    return this.#texts.get(file)
  }

  /**
   * Maps a place to its original position, by the source map that its file names.
   * @param {{ file: string, line: number, column: number }} place from 1
   * @returns {{ file: string, line: number, column: number, function: string | null }} original
   *   place; the same place without a source map
   */
  original (place) {
    const found = this.#mapOf(place.file)
    const at =
      found &&
      originalPositionFor(found.map, {
        line: place.line,
        column: Math.max(0, place.column - 1),
        bias: place.column === 0 ? LEAST_UPPER_BOUND : GREATEST_LOWER_BOUND
      })
    if (!found || !at?.source || at.source.length > MOST_PATH_LENGTH) {
      return { ...place, function: null }
    } // The original place has a name only if the source map contains it.
    return {
      file: sourcePath(at.source, found.file),
      line: at.line,
      column: at.column + 1,
      function: at.name
    }
  }

  /**
   * @param {string} file
   * @returns {string} path relative to the nearest package outside node_modules; unchanged if no
   *   package is visible. Files of the agent, which may lie anywhere, begin with the agent's name
   */
  relative (file) {
    const [, above = path.dirname(file)] = /^(.*?)[/\\]node_modules[/\\]/.exec(file) ?? []
    const found =
      this.#files && path.isAbsolute(file) && file.length <= MOST_PATH_LENGTH
        ? this.#packageOf(above || path.sep)
        : undefined
    return found
      ? path.join(found.name === AGENT ? AGENT : '', path.relative(found.folder, file))
      : file
  }

  /**
   * @param {string} file of the app's own code
   * @returns {string | undefined} package name in the nearest manifest; undefined if none is
   *   readable
   */
  packageName (file) {
    const isSeen = this.#files && originOf(file) === 'app' && path.isAbsolute(file) &&
      file.length <= MOST_PATH_LENGTH
    const name = isSeen ? this.#packageOf(path.dirname(file))?.name : undefined
    return typeof name === 'string' && name !== '' ? name : undefined
  }

  /**
   * @param {string} folder
   * @returns {{ folder: string, name: unknown } | undefined}
   */
  #packageOf (folder) {
    if (!this.#packages.has(folder)) {
      const parent = path.dirname(folder)
      this.#packages.set(
        folder,
        this.#packageIn(folder) ?? (parent === folder ? undefined : this.#packageOf(parent))
      )
    }
    return this.#packages.get(folder)
  }

  /** @param {string} folder */
  #packageIn (folder) {
    const text = this.text(path.join(folder, 'package.json'))
    if (text === undefined) return undefined
    try {
      return { folder, name: parseBounded(text).name }
    } catch {
      return { folder, name: undefined } // A manifest exists, but has no readable name.
    }
  }

  /** @param {string} file */
  #mapOf (file) {
    if (!this.#maps.has(file)) {
      let found
      try {
        found = this.#loadMap(file)
      } catch {} // An unreadable source map is ignored.
      this.#maps.set(file, found)
    }
    return this.#maps.get(file)
  }

  /** @param {string} file */
  #loadMap (file) {
    const address = mapAddress(this.text(file) ?? '')
    const inline = INLINE_MAP.exec(address)?.[0]
    if (inline) {
      return {
        map: new TraceMap(
          parseBounded(Buffer.from(address.slice(inline.length), 'base64').toString())
        ),
        file
      }
    }
    if (address === '' || address.includes(':')) return undefined
    const mapFile = path.resolve(path.dirname(file), decodeURIComponent(address))
    const map = this.text(mapFile)
    return map === undefined ? undefined : { map: new TraceMap(parseBounded(map)), file: mapFile }
  }
}

/**
 * @param {string} text of a file
 * @returns {string} URL in its last line; empty without one
 */
function mapAddress (text) {
  const at = text.lastIndexOf(MAP)
  const isComment = at >= 2 && /[#@] $/.test(text.slice(at - 2, at))
  const address = isComment ? text.slice(at + MAP.length).trimEnd() : ''
  return /\s/.test(address) ? '' : address
}

/**
 * @param {string} source name of the source in the map
 * @param {string} mapFile
 * @returns {string} absolute path, without the prefixes of bundlers
 */
function sourcePath (source, mapFile) {
  const plain = source.replace(/^webpack:\/\/[^/]*\//, '').replace(/^file:\/\//, '')
  return path.isAbsolute(plain) ? plain : path.resolve(path.dirname(mapFile), plain)
}

module.exports = { Sources }
