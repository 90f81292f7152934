'use strict'

const fs = require('node:fs')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { spawn } = require('node:child_process')
const { once } = require('node:events')

/** A loopback port that is free now. @returns {Promise<number>} */
async function freePort () {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}

/**
 * A server of somebody else's, run for a test: its files in a folder of its own, ready when its /-/ready says so.
 * @param {object} options
 * @param {string} options.file the binary
 * @param {(folder: string, port: number) => Promise<string[]> | string[]} options.args
 * @param {Record<string, string>} options.files name → content, in the folder
 * @param {number} [options.timeoutMs]
 * @returns {Promise<{ url: string, stop: () => Promise<void> }>}
 */
async function startServerProcess ({ file, args, files, timeoutMs = 20_000 }) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-server-'))
  for (const [name, content] of Object.entries(files)) fs.writeFileSync(path.join(folder, name), content)
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const child = spawn(file, await args(folder, port), { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => { output = (output + chunk).slice(-10_000) })
  const exited = once(child, 'exit')
  const stop = async () => {
    const timer = setTimeout(() => child.kill('SIGKILL'), 5000)
    child.kill('SIGTERM')
    if (child.exitCode === null && child.signalCode === null) await exited
    clearTimeout(timer)
    fs.rmSync(folder, { recursive: true, force: true })
  }
  for (const deadline = Date.now() + timeoutMs; ;) {
    const ready = await fetch(`${url}/-/ready`).then(response => response.ok, () => false)
    if (ready) return { url, stop }
    if (child.exitCode !== null || Date.now() > deadline) {
      await stop()
      throw new Error(`${file} did not get ready:\n${output}`)
    }
    await new Promise(resolve => setTimeout(resolve, 100))
  }
}

module.exports = { startServerProcess, freePort }
