'use strict'

/** Checks of an app's folder with the packages of memwatch. */

const assert = require('node:assert')
const fs = require('node:fs')
const path = require('node:path')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { environment } = require('../support/agent-collector')
const { eventually } = require('../support/exporter')

/** Time limit for a process to end by itself. */
const MOST_MS = 60_000
const SERVER = `require('node:http').createServer((request, response) => response.end()).listen(0)
process.on('SIGTERM', () => process.exit())
`
const APP_FILES = {
  'server.js': SERVER,
  'server.mjs': `import http from 'node:http'
http.createServer((request, response) => response.end()).listen(0)
process.on('SIGTERM', () => process.exit())
`,
  'server.ts': `import http from 'node:http'
const port: number = 0
http.createServer((request, response) => response.end()).listen(port)
process.on('SIGTERM', () => process.exit())
`,
  'with-agent.js': `require('memwatch/agent')\n${SERVER}`
}

/**
 * An app without dependencies.
 * @param {string} folder folder to create
 * @param {object} [manifest] further fields of its package.json
 */
function writeApp (folder, manifest = {}) {
  fs.mkdirSync(folder, { recursive: true })
  const files = {
    ...APP_FILES,
    'package.json': JSON.stringify({ name: 'shop', version: '1.0.0', private: true, ...manifest })
  }
  for (const [name, content] of Object.entries(files)) {
    fs.writeFileSync(path.join(folder, name), content)
  }
}

/** A folder with installed packages, and the Node.js that runs there. */
class Installed {
  #node
  #socket
  /** @type {Set<import('node:child_process').ChildProcess>} */
  #running = new Set()

  /**
   * @param {string} folder
   * @param {string} node path of a binary, named node
   */
  constructor (folder, node) {
    this.folder = folder
    this.#node = node
    this.#socket = path.join(folder, 'exporter.sock')
  }

  /**
   * @param {string} command searched in the folder's node_modules, then beside this Node.js
   * @param {string[]} args
   * @param {NodeJS.ProcessEnv} [env]
   */
  start (command, args, env = {}) {
    const { folder } = this
    const own = [path.join(folder, 'node_modules/.bin'), path.dirname(this.#node)]
    const child = spawn(command, args, {
      cwd: folder,
      env: environment({
        PATH: [...own, process.env.PATH].join(':'),
        HOME: folder,
        MEMWATCH_SOCKET: this.#socket,
        ...env
      }),
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true
    })
    this.#running.add(child)
    const output = { stdout: '', stderr: '' }
    for (const stream of /** @type {const} */ (['stdout', 'stderr'])) {
      child[stream].setEncoding('utf8').on('data', text => { output[stream] += text })
    }
    const ended = once(child, 'close').then(([code]) => {
      this.#running.delete(child)
      return { code, ...output }
    })
    return { child, output, ended }
  }

  /**
   * @param {string} command
   * @param {string[]} args
   * @param {NodeJS.ProcessEnv} [env]
   * @returns {Promise<{ code: number, stdout: string, stderr: string }>}
   */
  async run (command, args, env) {
    const { child, ended } = this.start(command, args, env)
    const timer = setTimeout(() => kill(child, 'SIGKILL'), MOST_MS)
    const result = await ended
    clearTimeout(timer)
    return result
  }

  /**
   * `memwatch run` must report the app by its name and this Node.js.
   * @param {string} [command] command that starts memwatch
   * @param {string[]} [before] its first arguments
   */
  async checkRun (command = 'memwatch', before = []) {
    const { code, stdout, stderr } = await this.run(
      command,
      [...before, 'run', '--for', '3', '--json', '--', 'node', 'server.js']
    )
    assert.strictEqual(code, 0, stderr)
    const [target] = JSON.parse(stdout).targets
    assert.strictEqual(target.target, 'shop')
    assert.strictEqual(target.node, await this.version())
  }

  /** @returns {Promise<string>} version of this Node.js, such as 20.19.0 */
  async version () {
    return (await this.run('node', ['-p', 'process.versions.node'])).stdout.trim()
  }

  /**
   * The exporter of this folder must get frames of every app.
   * @param {Record<string, { command?: string, args: string[], env?: NodeJS.ProcessEnv }>} apps
   *   apps by the name of their target
   * @param {string} [script] script of the command line, for the Node.js of the tests; default: the
   *   installed one
   * @param {string[]} [options] further options of the exporter
   */
  async checkApps (apps, script, options = []) {
    const [command, ...before] = script ? [process.execPath, script] : ['memwatch']
    const exporter = this.start(command, [
      ...before, 'exporter', '--listen', '127.0.0.1:0', '--log-level', 'silent', ...options
    ])
    try {
      const [, url] = await eventually(
        () => /metrics at (http:\S+)/.exec(exporter.output.stderr) ??
          (exporter.child.exitCode === null ? undefined : []),
        Boolean,
        MOST_MS
      )
      assert.ok(url, `the exporter ended: ${exporter.output.stderr}`)
      const started = Object.entries(apps).map(([name, { command = 'node', args, env }]) =>
        this.start(command, args, { MEMWATCH_NAME: name, ...env }))
      try {
        await this.checkTargets(url, Object.keys(apps))
      } catch (error) {
        const said = started.map(({ output }) => output.stderr).join('')
        throw new Error(`${/** @type {Error} */ (error).message}\n${said}`)
      }
    } finally {
      await this.stop()
    }
  }

  /**
   * @param {string} url of an exporter's metrics
   * @param {string[]} names names of apps that it watches, or will watch
   */
  async checkTargets (url, names) {
    const missing = async () => {
      const text = await fetch(url).then(answer => answer.text(), () => '')
      const up = text.split('\n').filter(line => /^memwatch_target_up\{.* 1$/.test(line))
      return names.filter(name => !up.some(line => line.includes(`target="${name}"`)))
    }
    await eventually(missing, of => of.length === 0, MOST_MS)
  }

  /** Ends all processes that this object started. */
  async stop () {
    const children = [...this.#running]
    for (const child of children) kill(child, 'SIGTERM')
    const timer = setTimeout(() => children.forEach(child => kill(child, 'SIGKILL')), 10_000)
    await Promise.all(children.map(child => once(child, 'close')))
    clearTimeout(timer)
  }
}

/**
 * Ends the process and its children.
 * @param {import('node:child_process').ChildProcess} child
 * @param {NodeJS.Signals} signal
 */
function kill ({ pid }, signal) {
  try {
    process.kill(-Number(pid), signal)
  } catch {} // it has ended
}

/** Ways to preload the agent without further packages. */
const PRELOADED = {
  require: { args: ['-r', 'memwatch/agent', 'server.js'] },
  path: { args: ['-r', './node_modules/memwatch/agent', 'server.js'] },
  import: { args: ['--import', 'memwatch/agent', 'server.mjs'] },
  variable: { args: ['server.js'], env: { NODE_OPTIONS: '--require memwatch/agent' } }
}

/**
 * @param {string} folder
 * @returns {number} bytes of all files below the folder, without following links
 */
const bytesBelow = folder =>
  fs.readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter(entry => entry.isFile())
    .reduce((sum, { parentPath, name }) => sum + fs.statSync(path.join(parentPath, name)).size, 0)

module.exports = { Installed, PRELOADED, bytesBelow, writeApp }
