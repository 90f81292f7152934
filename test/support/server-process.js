'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { spawn } = require('node:child_process')
const { freePort } = require('./free-port')

/** Grace period of a server after SIGTERM. */
const STOP_TIMEOUT_MS = 5000
/**
 * Number of attempts to start: another program may take the free port before the server binds it.
 */
const ATTEMPTS = 3

/**
 * @typedef {object} ServerOptions
 * @property {string} file the binary
 * @property {(folder: string, port: number) => Promise<string[]> | string[]} args
 * @property {Record<string, string>} files files, name → content, in a folder of their own, which
 *   is the working directory
 * @property {number} [timeoutMs] time limit for the first answer of its /-/ready
 *
 * @typedef {object} ServerProcess
 * @property {string} url
 * @property {number} pid
 * @property {string} folder removed when it stops
 * @property {() => string} output newest 10 kB of its output
 * @property {() => Promise<void>} stop SIGTERM, then SIGKILL; may be called twice
 */

/**
 * Starts another program's server for a test on a free loopback port, and waits for its /-/ready.
 * The server ends with this process.
 * @param {ServerOptions} options
 * @returns {Promise<ServerProcess>} rejects with the server's output if it does not become ready
 */
async function startServerProcess (options) {
  for (let attempt = 1; ; attempt++) {
    const server = await start(options)
    if ('url' in server) return server
    if (attempt === ATTEMPTS || !/address already in use/.test(server.output)) {
      throw new Error(`${options.file} ${server.reason}:\n${server.output}`)
    }
  }
}

/**
 * @param {ServerOptions} options
 * @returns {Promise<ServerProcess | { reason: string, output: string }>}
 */
async function start ({ file, args, files, timeoutMs = 20_000 }) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-server-'))
  for (const [name, content] of Object.entries(files)) {
    fs.writeFileSync(path.join(folder, name), content)
  }
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const child = spawn(file, await args(folder, port), {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe']
  })
  const killNow = () => child.kill('SIGKILL')
  process.once('exit', killNow)

  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', chunk => {
      output = (output + chunk).slice(-10_000)
    })
  }
  /** @type {string | undefined} */
  let ended
  const end = new Promise(resolve => {
    child.once('error', error => {
      ended ??= `did not start (${error.message})`
      resolve(undefined)
    })
    child.once('close', (code, signal) => {
      ended ??= `ended with ${signal ?? `status ${code}`}`
      resolve(undefined)
    })
  })
  const stop = async () => {
    const timer = setTimeout(killNow, STOP_TIMEOUT_MS)
    child.kill('SIGTERM')
    await end
    clearTimeout(timer)
    process.removeListener('exit', killNow)
    fs.rmSync(folder, { recursive: true, force: true })
  }

  for (const deadline = Date.now() + timeoutMs; ;) {
    const ready = await fetch(`${url}/-/ready`, { signal: AbortSignal.timeout(1000) }).then(
      response => response.ok,
      () => false
    )
    if (ready && !ended) return { url, pid: /** @type {number} */ (child.pid), folder, output: () => output, stop }
    if (ended || Date.now() > deadline) {
      const reason = ended ?? `was not ready in ${timeoutMs} ms`
      await stop()
      return { reason, output }
    }
    await new Promise(resolve => setTimeout(resolve, 50))
  }
}

module.exports = { startServerProcess }
