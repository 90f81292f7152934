'use strict'

/**
 * `npm run bench:lab`: every lab app, live, in a memory group of its own, on every Node given; the primary verdict against
 * the one it must get. A long proof: about 15 minutes a Node.
 *
 *   npm run bench:lab -- --nodes /path/to/node20:/path/to/node22 --apps js-heap-leak,healthy-cache-fill
 */

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFileSync, spawnSync } = require('node:child_process')
const { parseArgs } = require('node:util')
const { apps } = require('memwatch-lab')

const MEMWATCH = path.join(__dirname, '../exporter/cli/memwatch.js')

const { values: given } = parseArgs({
  options: {
    nodes: { type: 'string', default: process.execPath },
    apps: { type: 'string', default: apps.map(({ id }) => id).join(',') }
  }
})

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-bench-'))
let wrong = 0
console.log(['node', 'app', 'expected', 'primary', 'after s', 'right', 'other findings'].join('\t'))
for (const node of given.nodes.split(':')) {
  const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim()
  for (const id of given.apps.split(',')) {
    const app = apps.find(app => app.id === id)
    if (!app) throw new Error(`--apps: no app called ${id}`)
    const file = path.join(folder, `${version}-${id}.json`)
    spawnSync(process.execPath, [MEMWATCH, 'simulate', id, '--node', node, '--report', file], { stdio: 'ignore' })
    const { targets } = JSON.parse(fs.readFileSync(file, 'utf8'))
    const main = targets.find(({ thread }) => thread === 'main')
    const primary = main?.primary?.diagnosis ?? null
    const right = Boolean(main) && primary === app.diagnosis
    if (!right) wrong++
    const others = main?.verdicts.filter(verdict => ['suspected', 'confirmed'].includes(verdict.state) && verdict.diagnosis !== primary)
      .map(({ diagnosis, state }) => `${diagnosis} ${state}`).join(', ')
    console.log([version, id, app.diagnosis ?? '–', primary ?? '–', main?.primary?.confirmedAfterSeconds?.toFixed(0) ?? '', right ? 'yes' : 'NO', others || '–'].join('\t'))
  }
}
fs.rmSync(folder, { recursive: true })
console.log(`${wrong} wrong`)
process.exitCode = wrong > 0 ? 1 : 0
