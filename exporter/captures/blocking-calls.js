'use strict'

/**
 * A call that blocks the event loop until it finishes, with its non-blocking replacement.
 * @typedef {{ pattern: RegExp, call: string, instead: string }} BlockingCall pattern: found in a
 *   line of source
 */

/** Replacements by the name of Node's own blocking function. @type {Record<string, string>} */
const insteadOf = {
  readFileSync: 'fs.promises.readFile',
  writeFileSync: 'fs.promises.writeFile',
  appendFileSync: 'fs.promises.appendFile',
  copyFileSync: 'fs.promises.copyFile',
  cpSync: 'fs.promises.cp',
  rmSync: 'fs.promises.rm',
  readdirSync: 'fs.promises.readdir',
  statSync: 'fs.promises.stat',
  existsSync: 'fs.promises.access',
  execSync: 'child_process.exec',
  execFileSync: 'child_process.execFile',
  spawnSync: 'child_process.spawn',
  pbkdf2Sync: 'crypto.pbkdf2',
  scryptSync: 'crypto.scrypt',
  hkdfSync: 'crypto.hkdf',
  generateKeyPairSync: 'crypto.generateKeyPair',
  generateKeySync: 'crypto.generateKey',
  generatePrimeSync: 'crypto.generatePrime',
  randomFillSync: 'crypto.randomFill',
  // This is a function of Node.js before 20 and since 22, and a function of V8 in between.
  structuredClone: 'a smaller object, or transfer'
}

/**
 * V8's own work has no frame, so only the source line can name it. Calls of Node.js and of addons
 * have frames of their own. Time of the line outside these frames belongs to another call on it.
 * The most specific patterns come first.
 * @type {BlockingCall[]}
 */
const inSource = [
  {
    pattern: /\bJSON\s*\.\s*parse\s*\(/,
    call: 'JSON.parse',
    instead: 'a streaming parser, or a worker thread'
  },
  {
    pattern: /\bJSON\s*\.\s*stringify\s*\(/,
    call: 'JSON.stringify',
    instead: 'a streaming serializer, or a worker thread'
  },
  {
    pattern: /\bstructuredClone\s*\(/,
    call: 'structuredClone',
    instead: insteadOf.structuredClone
  },
  {
    pattern: /\.\s*(?:test|exec|match|matchAll|search|replace|replaceAll|split)\s*\(/,
    call: 'a regular expression',
    instead:
      'an expression that cannot backtrack (no nested quantifiers), a limit for the length of ' +
        'its input, or re2'
  },
  {
    pattern: /\.\s*(?:sort|toSorted)\s*\(/,
    call: 'sort',
    instead: 'a worker thread, or smaller pieces with setImmediate between them'
  }
]

/** Node.js has one function, of this name, for all synchronous methods of zlib. */
const OF_ZLIB = 'syncBufferWrapper'
const ZLIB = Object.freeze({
  call: 'a …Sync method of zlib', instead: 'the same method without Sync'
})

/**
 * @param {string} name of a function of Node
 * @returns {{ call: string, instead: string } | undefined}
 */
function blockingCall (name) {
  if (name === OF_ZLIB) return ZLIB
  if (Object.hasOwn(insteadOf, name)) return { call: name, instead: insteadOf[name] }
  return /[a-z]Sync$/.test(name)
    ? { call: name, instead: `${name.slice(0, -4)} with a callback, or a worker thread` }
    : undefined
}

/** A loop may take the time of a line itself. */
const LOOP = /(?<![.\w$])(?:for(?:\s+await)?|while|do)\s*[({]/
/** A longer line has several statements, as in a bundle, and any of them may take the time. */
const MOST_LINE_LENGTH = 200

/**
 * @param {string} line of source
 * @returns {{ call: string, instead: string } | undefined} undefined if the line has no such call,
 *   or if something else on it may take the time
 */
function blockingCallIn (line) {
  if (line.trim().length > MOST_LINE_LENGTH || LOOP.test(line)) return undefined
  const found = inSource.find(({ pattern }) => pattern.test(line))
  return found && { call: found.call, instead: found.instead }
}

module.exports = { blockingCall, blockingCallIn }
