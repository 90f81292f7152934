'use strict'

/**
 * Records the GC logs in this folder: lab apps under --trace-gc, each in a memory cgroup like a
 * container.
 *
 *   node test/sources/make.js FOLDER NODE_BINARY MAJOR APP@SECONDS … APP:fixed runs the fixed form
 */

const fs = require('node:fs')
const path = require('node:path')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { gzipSync } = require('node:zlib')
const { apps } = require('../../lab')
const { createMemoryGroup } = require('../../exporter/process/memory-group')

/** @param {string[]} args */
async function main ([folder, node, major, ...wanted]) {
  for (const text of wanted) {
    const [name, seconds] = text.split('@')
    const [id, form] = name.split(':')
    const app = apps.find(app => app.id === id)
    if (!app) throw new Error(`no app ${id}`)
    const group = createMemoryGroup({
      limitBytes: app.memoryLimitBytes,
      onParent: app.limitOnParent,
      name: 'trace-gc'
    })
    const file = path.join(folder, `trace-gc-${major}-${id}${form ? `-${form}` : ''}.log`)
    const fd = fs.openSync(file, 'w')
    const { command, args } = group.wrap(node, [
      '--trace-gc',
      ...(app.nodeArgs ?? []),
      app.script,
      '--seconds',
      seconds ?? String(app.seconds),
      ...(form ? [`--${form}`] : [])
    ])
    await once(
      spawn(command, args, {
        stdio: ['ignore', fd, fd],
        env: { ...process.env, NODE_OPTIONS: '' }
      }),
      'exit'
    )
    await group.remove()
    fs.writeFileSync(`${file}.gz`, gzipSync(fs.readFileSync(file), { level: 9 }))
    fs.rmSync(file)
    console.log(`${file}.gz${group.supported ? '' : `, without a memory group: ${group.reason}`}`)
  }
}

main(process.argv.slice(2))
