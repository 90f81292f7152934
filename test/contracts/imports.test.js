'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { spawnSync } = require('node:child_process')
const rules = require('../../.dependency-cruiser.js')
const { joinRooms, reduceArrows } = require('../../scripts/import-picture')
const { defined } = require('../support/defined')

const RULES = require.resolve('../../.dependency-cruiser.js')
const CRUISER = path.join(__dirname, '../../node_modules/.bin/depcruise')

/** File → the files it imports; the comment names the rule that it breaks. */
const FILES = {
  // no-circle-of-files
  'agent/collect/gc.js': ['./heap'],
  'agent/collect/heap.js': ['./gc'],
  // agent-imports-itself-and-builtins
  'agent/begin.js': ['../exporter/text/format', 'node:fs', './agent'],
  'agent/agent.js': [],
  'agent/frame.js': [],
  'agent/transport.js': [],
  // exporter-imports-the-wire-contract
  'exporter/ingest/decode.js': ['../../agent/frame', '../../agent/transport'],
  // no-circle-of-rooms: no file is in a circle
  'exporter/otlp/sender.js': ['../recording/format'],
  'exporter/recording/format.js': ['node:fs'],
  'exporter/recording/replay.js': ['../otlp/scope'],
  'exporter/otlp/scope.js': [],
  // simulate-imports-the-lab
  'exporter/cli/simulate.js': ['../../lab/index'],
  'exporter/cli/try.js': ['../../lab/index'],
  // lab-imports-itself-and-builtins
  'lab/index.js': ['./json', 'node:os', '../exporter/text/quantity'],
  'lab/json.js': [],
  // nothing-imports-development
  'exporter/text/quantity.js': ['../../scripts/docs'],
  'scripts/docs.js': [],
  // pure-rooms-import-no-io
  'exporter/signals/heap.js': ['node:zlib', 'node:fs'],
  // pure-rooms-import-no-sink
  'exporter/diagnoses/js-heap-leak.js': ['../fixes/malloc', '../expose/server'],
  'exporter/fixes/malloc.js': ['../text/format'],
  'exporter/expose/server.js': ['node:http'],
  // imports-resolve
  'exporter/text/format.js': ['./absent']
}

it('each rule finds the import that breaks it, and no other', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-imports-'))
  try {
    for (const [file, imports] of Object.entries(FILES)) {
      const target = path.join(folder, file)
      fs.mkdirSync(path.dirname(target), { recursive: true })
      fs.writeFileSync(target, imports.map(name => `require('${name}')\n`).join(''))
    }
    const { stdout, stderr } = spawnSync(process.execPath,
      [CRUISER, '--config', RULES, '--output-type', 'json', 'agent', 'exporter', 'lab'],
      { cwd: folder, encoding: 'utf8', maxBuffer: 2 ** 26 })
    expect(stderr).toBe('')
    const { violations } = JSON.parse(stdout).summary
    const found = violations.map(({ rule, from, to }) => `${rule.name}: ${from} -> ${to}`)
    expect(found.sort()).toEqual([
      'agent-imports-itself-and-builtins: agent/begin.js -> exporter/text/format.js',
      'exporter-imports-the-wire-contract: exporter/ingest/decode.js -> agent/transport.js',
      'imports-resolve: exporter/text/format.js -> ./absent',
      'lab-imports-itself-and-builtins: lab/index.js -> exporter/text/quantity.js',
      'no-circle-of-files: agent/collect/gc.js -> agent/collect/heap.js',
      'no-circle-of-rooms: exporter/otlp -> exporter/recording',
      'no-circle-of-rooms: exporter/recording -> exporter/otlp',
      'nothing-imports-development: exporter/text/quantity.js -> scripts/docs.js',
      'pure-rooms-import-no-io: exporter/signals/heap.js -> fs',
      'pure-rooms-import-no-sink: exporter/diagnoses/js-heap-leak.js -> exporter/expose/server.js',
      'simulate-imports-the-lab: exporter/cli/try.js -> lab/index.js'
    ])
    const names = defined(rules.forbidden).map(({ name }) => name)
    expect([...new Set(violations.map(({ rule }) => rule.name))].sort()).toEqual(names.sort())
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
}, 60_000)

it('the wire contract of the rule is what the agent exports, besides the agent itself', () => {
  const { exports: subpaths } = require('../../agent/package.json')
  const exported = Object.values(subpaths)
    .filter(file => file !== './index.js')
    .map(file => file.replace('./', 'agent/'))
  const rule = rules.forbidden?.find(({ name }) => name === 'exporter-imports-the-wire-contract')
  const pattern = String(rule && 'to' in rule && rule.to.pathNot)
  expect(exported.filter(file => !new RegExp(pattern).test(file))).toEqual([])
  expect(pattern.split('|').length).toBe(exported.length)
})

describe('the picture of the imports', () => {
  const graphOf = object => new Map(Object.entries(object).map(([from, to]) => [from, new Set(to)]))
  const listsOf = graph => Object.fromEntries([...graph].map(([from, to]) => [from, [...to]]))

  it('draws a folder as a room, a file that starts folders as itself, and other files as one', () => {
    const rooms = joinRooms(
      graphOf({
        'agent/agent.js': ['agent/collect/gc.js', 'agent/guard.js'],
        'agent/collect/gc.js': ['agent/collect/heap.js', 'agent/guard.js', 'agent/frame.js'],
        'agent/collect/heap.js': [],
        'agent/collect/cgroup-paths.js': [],
        'agent/guard.js': [],
        'agent/frame.js': ['agent/guard.js'],
        'exporter/process/witness.js': ['agent/collect/cgroup-paths.js']
      })
    )
    const shared = 'agent/wire contract, shared files'
    expect(listsOf(rooms)).toEqual({
      'agent/agent.js': ['agent/collect', shared],
      'agent/collect': [shared],
      [shared]: [],
      'exporter/process': [shared]
    })
  })

  it('leaves out an arrow that others imply, and refuses a circle', () => {
    expect(listsOf(reduceArrows(graphOf({ a: ['b', 'c', 'd'], b: ['c'], c: [], d: [] }))))
      .toEqual({ a: ['b', 'd'], b: ['c'], c: [], d: [] })
    expect(() => reduceArrows(graphOf({ a: ['b'], b: ['c'], c: ['a'] }))).toThrow(
      'a imports itself through others'
    )
  })
})
