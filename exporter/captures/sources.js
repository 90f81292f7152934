'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { GREATEST_LOWER_BOUND, LEAST_UPPER_BOUND, TraceMap, originalPositionFor } = require('@jridgewell/trace-mapping')
const { Witness } = require('../deaths/witness')

/** A bundle may be large, and its map larger: what is larger than this is not read. */
const MOST_BYTES = 16 * 2 ** 20
/** The name of the agent's package. */
const AGENT = 'memwatch'
/** In a file's last so many bytes it says where its map is. */
const TAIL_BYTES = 4096

/**
 * The files of a target's app, as far as they can be read from here: on the same machine, or in another container whose processes are seen (a shared
 * process namespace) and belong to the same user. What it reads is only used to say where something is.
 */
class Sources {
  #root
  /** @type {Map<string, string[] | undefined>} */
  #lines = new Map()
  /** @type {Map<string, { map: InstanceType<typeof TraceMap>, file: string } | undefined>} */
  #maps = new Map()
  /** @type {Map<string, { folder: string, name: unknown } | undefined>} */
  #packages = new Map()

  /** @param {string | undefined} root of the app's file system, as /proc/4711/root; undefined where it cannot be seen */
  constructor (root) {
    this.#root = root
  }

  /** @param {import('memwatch/frame').Hello} hello @returns {Sources} */
  static of (hello) {
    if (hello.platform !== 'linux') return new Sources('/') // no containers: one machine, one file system
    return new Sources(Witness.of(hello) ? `/proc/${hello.pid}/root` : undefined)
  }

  /** @param {string} file @param {number} line from 1 @returns {string | undefined} undefined where it cannot be read */
  line (file, line) {
    return this.#linesOf(file)?.[line - 1]
  }

  /** @param {string} file @returns {string | undefined} undefined where it cannot be read */
  text (file) {
    return this.#linesOf(file)?.join('\n')
  }

  /**
   * Where it was written, by the source map that its file names.
   * @param {{ file: string, line: number, column: number }} place from 1
   * @returns {{ file: string, line: number, column: number, function: string | null }} the same where there is no map
   */
  original (place) {
    const found = this.#mapOf(place.file)
    const at = found && originalPositionFor(found.map, { line: place.line, column: Math.max(0, place.column - 1), bias: place.column === 0 ? LEAST_UPPER_BOUND : GREATEST_LOWER_BOUND })
    if (!found || !at?.source) return { ...place, function: null } // a map may name none
    return { file: sourcePath(at.source, found.file), line: at.line, column: at.column + 1, function: at.name }
  }

  /**
   * @param {string} file
   * @returns {string} relative to the nearest package that is not in node_modules; as it is where there is none to see. The agent's may lie anywhere: what is
   *   its own is below `memwatch`
   */
  relative (file) {
    const [, above = path.dirname(file)] = /^(.*?)[/\\]node_modules[/\\]/.exec(file) ?? []
    const found = path.isAbsolute(file) ? this.#packageOf(above || path.sep) : undefined
    return found ? path.join(found.name === AGENT ? AGENT : '', path.relative(found.folder, file)) : file
  }

  /** @param {string} folder @returns {{ folder: string, name: unknown } | undefined} */
  #packageOf (folder) {
    if (!this.#packages.has(folder)) {
      const parent = path.dirname(folder)
      this.#packages.set(folder, this.#packageIn(folder) ?? (parent === folder ? undefined : this.#packageOf(parent)))
    }
    return this.#packages.get(folder)
  }

  /** @param {string} folder */
  #packageIn (folder) {
    const text = this.#read(path.join(folder, 'package.json'))
    if (text === undefined) return undefined
    try {
      return { folder, name: JSON.parse(text).name }
    } catch {
      return { folder, name: undefined } // one is there, whatever it says
    }
  }

  /** @param {string} file @returns {string[] | undefined} */
  #linesOf (file) {
    if (!this.#lines.has(file)) this.#lines.set(file, this.#read(file)?.split('\n'))
    return this.#lines.get(file)
  }

  /** @param {string} file */
  #mapOf (file) {
    if (!this.#maps.has(file)) {
      let found
      try {
        found = this.#loadMap(file)
      } catch {} // a map that cannot be read is none
      this.#maps.set(file, found)
    }
    return this.#maps.get(file)
  }

  /** @param {string} file */
  #loadMap (file) {
    const text = this.#read(file)
    const name = text && /[#@] sourceMappingURL=(\S+)\s*$/.exec(text.slice(-TAIL_BYTES).trimEnd() + '\n')?.[1]
    const inline = text && /[#@] sourceMappingURL=data:application\/json[^,]*;base64,([A-Za-z0-9+/=]+)\s*$/.exec(text)?.[1]
    if (inline) return { map: new TraceMap(Buffer.from(inline, 'base64').toString()), file }
    if (!name || name.includes(':')) return undefined
    const mapFile = path.resolve(path.dirname(file), decodeURIComponent(name))
    const map = this.#read(mapFile)
    return map === undefined ? undefined : { map: new TraceMap(map), file: mapFile }
  }

  /** @param {string} file @returns {string | undefined} */
  #read (file) {
    if (this.#root === undefined || !path.isAbsolute(file)) return undefined
    try {
      const at = path.join(this.#root, file)
      const stats = fs.statSync(at)
      return stats.isFile() && stats.size <= MOST_BYTES ? fs.readFileSync(at, 'utf8') : undefined
    } catch {
      return undefined
    }
  }
}

/** @param {string} source as the map names it @param {string} mapFile @returns {string} absolute; without what bundlers put before it */
function sourcePath (source, mapFile) {
  const plain = source.replace(/^webpack:\/\/[^/]*\//, '').replace(/^file:\/\//, '')
  return path.isAbsolute(plain) ? plain : path.resolve(path.dirname(mapFile), plain)
}

module.exports = { Sources }
