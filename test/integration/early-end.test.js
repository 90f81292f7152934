'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { MEMWATCH } = require('../support/memwatch')
const { eventually } = require('../support/exporter')
const { runnersWith } = require('../support/tools')

/** Prints a line once a listener for SIGTERM exists. */
const PROBE = `const { on } = process
process.on = function (name, ...rest) {
  on.call(this, name, ...rest)
  if (name === 'SIGTERM') process.stderr.write('listens\\n')
  return this
}`

const { it: itAsRoot } = runnersWith(
  'the end of the first process of a container',
  process.getuid?.() === 0 ? undefined : 'it needs root'
)

// A short Job ends while its sidecar is still starting. The kernel delivers no signal to the first
// process of a namespace if that process has no handler for it.
itAsRoot('an exporter as first process of a container ends on SIGTERM, even at start', async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-early-'))
  const probe = path.join(folder, 'probe.js')
  fs.writeFileSync(probe, PROBE)
  const child = spawn(
    'unshare',
    [
      '--pid',
      '--fork',
      '--kill-child',
      process.execPath,
      '--require',
      probe,
      MEMWATCH,
      'exporter',
      '--listen',
      '127.0.0.1:0',
      '--socket',
      path.join(folder, 's'),
      '--log-level',
      'silent'
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] }
  )
  let said = ''
  child.stderr.on('data', chunk => {
    said += chunk
  })
  const ended = once(child, 'close')
  try {
    await eventually(() => said, Boolean)
    expect(said).toBe('listens\n')
    process.kill(
      Number(fs.readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')),
      'SIGTERM'
    )
    expect((await ended)[0]).toBe(0)
  } finally {
    child.kill('SIGKILL')
    await ended
    fs.rmSync(folder, { recursive: true, force: true })
  }
})
