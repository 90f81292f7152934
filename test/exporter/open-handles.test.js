'use strict'

const { spawn } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { readOpenHandles } = require('../../exporter/process/open-handles')
const { hello } = require('../support/frames')
const { defined } = require('../support/defined')

/** Holds 12 connections to a server of its own, a file 20 times and 7 files of a folder. */
const HOLDER = `
  const fs = require('node:fs'), net = require('node:net'), path = require('node:path')
  const { Worker } = require('node:worker_threads')
  const [folder] = process.argv.slice(1)
  const kept = []
  const server = net.createServer(socket => { kept.push(socket) }).listen(0, '127.0.0.1', async () => {
    const { port } = server.address()
    for (let i = 0; i < 12; i++) {
      await new Promise(resolve => kept.push(net.connect(port, '127.0.0.1', resolve)))
    }
    while (kept.length < 24) await new Promise(setImmediate)
    for (let i = 0; i < 20; i++) kept.push(fs.openSync(path.join(folder, 'log'), 'a'))
    for (let i = 0; i < 7; i++) kept.push(fs.openSync(path.join(folder, 'part' + i), 'w'))
    fs.writeSync(1, String(port) + '\\n')
  })
  process.stdin.on('end', () => process.exit()).resume()`

/**
 * proc_pid_stat(5): field 22.
 * @param {number} pid
 */
const startTimeOf = pid => {
  const stat = fs.readFileSync(`/proc/${pid}/stat`, 'latin1')
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[22 - 3])
}

describe('open handles of a process', () => {
  it('are connections by peer, files by path or folder, and threads by name', async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-handles-'))
    const child = spawn(process.execPath, ['-e', HOLDER, folder], {
      stdio: ['pipe', 'pipe', 'inherit']
    })
    try {
      const [port] = await once(child.stdout.setEncoding('utf8'), 'data')
      const pid = defined(child.pid)
      const startTimeTicks = startTimeOf(pid)
      const found = readOpenHandles(hello({ pid, startTimeTicks }))
      expect(found).toEqual(expect.arrayContaining([
        { count: 20, text: `of file ${folder}/log` },
        { count: 12, text: `TCP connections to 127.0.0.1:${port.trim()}` },
        { count: 12, text: `TCP connections accepted on port ${port.trim()}` },
        { count: 7, text: `files in ${folder}` }
      ]))
      expect(defined(found).map(({ text }) => text).join())
        .toMatch(/threads called [\w-]*(node|worker|V8)/i)
      expect(readOpenHandles(hello({ pid, startTimeTicks: startTimeTicks + 1 })))
        .toBeNull()
    } finally {
      child.stdin.end()
      await once(child, 'exit')
      fs.rmSync(folder, { recursive: true })
    }
  })
})
