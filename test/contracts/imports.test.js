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

/** Imports by file; the comments name the rules that they break. */
const FILES = {
  // no-circle-of-files
  'agent/collect/gc.js': ['./heap'],
  'agent/collect/heap.js': ['./gc'],
  // agent-imports-itself-and-builtins
  'agent/begin.js': ['../engine/text/format', 'node:fs', './isolate-agent'],
  'agent/isolate-agent.js': [],
  'agent/protocol/frame.js': [],
  'agent/transport.js': [],
  // others-import-the-protocol-of-the-agent
  'engine/decode/decode.js': ['../../agent/protocol/frame', '../../agent/transport'],
  // no-circle-of-folders: no file is in a circle
  'exporter/otlp/sender.js': ['../deaths/deaths'],
  'exporter/deaths/deaths.js': ['node:fs'],
  'exporter/deaths/schema.js': ['../otlp/scope'],
  'exporter/otlp/scope.js': [],
  // simulate-imports-the-lab
  'cli/simulate.js': ['../lab/index'],
  'cli/try.js': ['../lab/index'],
  // otlp-brings-opentelemetry-alone
  'exporter/otlp/settings.js': ['../../otlp/index'],
  'exporter/parts/otlp.js': ['../../otlp/index'],
  'otlp/index.js': [],
  // mcp-brings-the-sdk-alone
  'cli/mcp.js': ['../mcp/index'],
  'cli/run.js': ['../mcp/index'],
  'mcp/index.js': [],
  // lab-imports-itself-and-builtins
  'lab/index.js': ['./json', 'node:os', '../engine/text/quantity'],
  'lab/json.js': [],
  // a-part-uses-no-other-part
  'exporter/parts/index.js': ['./webhook'],
  'exporter/parts/webhook.js': ['./deaths'],
  'exporter/parts/deaths.js': [],
  // nothing-imports-development
  'engine/text/quantity.js': ['../../scripts/docs'],
  'scripts/docs.js': [],
  // engine-imports-no-io
  'engine/signals/heap.js': ['node:zlib', 'node:fs'],
  // engine-imports-the-protocol-alone
  'engine/diagnoses/js-heap-leak.js': ['../fixes/malloc', '../../exporter/expose/server'],
  'engine/fixes/malloc.js': ['../text/format'],
  'exporter/expose/server.js': ['node:http'],
  // exporter-imports-no-cli
  'exporter/config.js': ['../cli/memwatch'],
  'cli/memwatch.js': ['../exporter/expose/server', 'node:fs'],
  // imports-resolve
  'engine/text/format.js': ['./absent']
}

it('each rule finds exactly the imports that break it', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-imports-'))
  try {
    for (const [file, imports] of Object.entries(FILES)) {
      const target = path.join(folder, file)
      fs.mkdirSync(path.dirname(target), { recursive: true })
      fs.writeFileSync(target, imports.map(name => `require('${name}')\n`).join(''))
    }
    const { stdout, stderr } = spawnSync(process.execPath,
      [CRUISER, '--config', RULES, '--output-type', 'json',
        'agent', 'cli', 'engine', 'exporter', 'lab', 'mcp', 'otlp'],
      { cwd: folder, encoding: 'utf8', maxBuffer: 2 ** 26 })
    expect(stderr).toBe('')
    const { violations } = JSON.parse(stdout).summary
    const found = violations.map(({ rule, from, to }) => `${rule.name}: ${from} -> ${to}`)
    expect(found.sort()).toEqual([
      'a-part-uses-no-other-part: exporter/parts/webhook.js -> exporter/parts/deaths.js',
      'agent-imports-itself-and-builtins: agent/begin.js -> engine/text/format.js',
      'engine-imports-no-io: engine/signals/heap.js -> fs',
      'engine-imports-the-protocol-alone: engine/diagnoses/js-heap-leak.js -> ' +
        'exporter/expose/server.js',
      'exporter-imports-no-cli: exporter/config.js -> cli/memwatch.js',
      'imports-resolve: engine/text/format.js -> ./absent',
      'lab-imports-itself-and-builtins: lab/index.js -> engine/text/quantity.js',
      'mcp-brings-the-sdk-alone: cli/run.js -> mcp/index.js',
      'no-circle-of-files: agent/collect/gc.js -> agent/collect/heap.js',
      'no-circle-of-folders: exporter/deaths -> exporter/otlp',
      'no-circle-of-folders: exporter/otlp -> exporter/deaths',
      'nothing-imports-development: engine/text/quantity.js -> scripts/docs.js',
      'others-import-the-protocol-of-the-agent: engine/decode/decode.js -> agent/transport.js',
      'otlp-brings-opentelemetry-alone: exporter/parts/otlp.js -> otlp/index.js',
      'simulate-imports-the-lab: cli/try.js -> lab/index.js'
    ])
    const names = defined(rules.forbidden).map(({ name }) => name)
    expect([...new Set(violations.map(({ rule }) => rule.name))].sort()).toEqual(names.sort())
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
}, 60_000)

it('the agent exports only its protocol and itself', () => {
  const { exports: subpaths } = require('../../agent/package.json')
  expect(subpaths).toEqual({
    '.': './index.js',
    './agent': './index.js',
    './protocol/*': './protocol/*.js',
    './package.json': './package.json'
  })
})

describe('the diagram of imports', () => {
  const graphOf = object => new Map(Object.entries(object).map(([from, to]) => [from, new Set(to)]))
  const listsOf = graph => Object.fromEntries([...graph].map(([from, to]) => [from, [...to]]))

  it('has a node for each folder and each entry file, and one node for all other files', () => {
    const rooms = joinRooms(
      graphOf({
        'agent/isolate-agent.js': ['agent/collect/gc.js', 'agent/guard.js'],
        'agent/collect/gc.js': ['agent/collect/heap.js', 'agent/guard.js', 'agent/protocol/frame.js'],
        'agent/collect/heap.js': [],
        'agent/protocol/cgroup-paths.js': [],
        'agent/guard.js': [],
        'agent/protocol/frame.js': ['agent/guard.js'],
        'exporter/process/witness.js': ['agent/protocol/cgroup-paths.js'],
        'exporter/clock.js': ['agent/protocol/frame.js']
      })
    )
    const shared = 'agent/shared files'
    expect(listsOf(rooms)).toEqual({
      'agent/isolate-agent.js': ['agent/collect', shared],
      'agent/collect': [shared, 'agent/protocol'],
      'agent/protocol': [shared],
      [shared]: [],
      'exporter/process': ['agent/protocol'],
      'exporter/shared files': ['agent/protocol']
    })
  })

  it('omits arrows that are implied by others, and refuses a circle', () => {
    expect(listsOf(reduceArrows(graphOf({ a: ['b', 'c', 'd'], b: ['c'], c: [], d: [] }))))
      .toEqual({ a: ['b', 'd'], b: ['c'], c: [], d: [] })
    expect(() => reduceArrows(graphOf({ a: ['b'], b: ['c'], c: ['a'] }))).toThrow(
      'a imports itself through others'
    )
  })
})
