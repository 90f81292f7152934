'use strict'

/** Runs README's first commands in a container that has only Node.js. */

const assert = require('node:assert')
const fs = require('node:fs')
const path = require('node:path')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { fetchDebian } = require('../platforms/fetched')
const { bare } = require('../platforms/rooms')

const README = path.join(__dirname, '../../README.md')
/** Debian packages of the image `node:22-bookworm-slim` that a shell and Node.js need. */
const DEBIAN = [
  'bash', 'coreutils', 'dash', 'findutils', 'grep', 'libacl1', 'libattr1', 'libc6', 'libgcc-s1',
  'libgmp10', 'libpcre2-8-0', 'libselinux1', 'libssl3', 'libstdc++6', 'libtinfo6', 'sed'
]
/** Time limit from an empty folder to the first correct report. */
const MOST_SECONDS = 120

/** @returns {string} the commands under README's mark, unchanged */
function firstCommands () {
  const block = /<!-- bare -->\n+```sh\n([\s\S]*?)```/.exec(fs.readFileSync(README, 'utf8'))
  assert.ok(block, 'README.md marks no block with <!-- bare -->')
  return block[1]
}

/**
 * The report must name the leak of README's app within two minutes of the first command.
 * @param {import('./cases').Place} place
 * @returns {Promise<string>} measured times
 */
async function readme ({ folder, node, script, registry }) {
  const root = path.join(folder, 'root')
  fs.mkdirSync(root)
  const wrap = bare({
    folder: root,
    system: fetchDebian('bookworm', 'bare', () => DEBIAN),
    node: path.dirname(path.dirname(node)),
    npm: path.dirname(path.dirname(script))
  })
  const [command, ...args] = wrap([
    'env', `NPM_CONFIG_REGISTRY=${registry.url}/`, '/bin/bash', '-ec', firstCommands()
  ])
  const began = performance.now()
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  const kill = () => {
    try {
      process.kill(-(/** @type {number} */ (child.pid)), 'SIGKILL')
    } catch {} // The process has already ended.
  }
  const timer = setTimeout(kill, 2 * MOST_SECONDS * 1000)
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', text => { output += text })
  }
  const [code] = await once(child, 'close')
  clearTimeout(timer)
  const seconds = Math.round((performance.now() - began) / 1000)
  assert.strictEqual(code, 0, output)
  assert.match(output, /^ {2}(Suspected|Confirmed): js-heap-leak/m, output)
  assert.ok(seconds < MOST_SECONDS, `${seconds} s\n${output}`)
  return `${seconds} s from nothing to the report`
}

module.exports = { readme }
