'use strict'

// The import rules of ARCHITECTURE.md, checked by `npm run imports` on the real imports.

/** Rooms that compute: frames in, verdicts out. */
const PURE = 'series|signals|statistics|anatomy|v8|diagnoses|classify|fixes'
/** Rooms that report, store or start something. */
const REPORTING = 'expose|otlp|cli|flight|captures|deaths|commands|process|data-folder|self-care|page|parts'
/** Builtins that compute: all others reach files, the network, the machine or other processes. */
const COMPUTING_BUILTINS = 'buffer|events|path|url|util|zlib'
/** The wire contract: what agent/package.json exports of it. */
const WIRE = 'buckets|collect/cgroup-paths|config|frame|identity|proof|text-rules'

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    {
      name: 'no-circle-of-files',
      comment: 'Files that need each other are one file, or lack a third one that both import.',
      severity: 'error',
      from: {},
      to: { circular: true }
    },
    {
      name: 'no-circle-of-rooms',
      comment: 'Each room of the exporter is above or below another one, never both.',
      severity: 'error',
      scope: 'folder',
      from: { path: '^exporter/' },
      to: { circular: true, path: '^exporter/' }
    },
    {
      name: 'agent-imports-itself-and-builtins',
      comment: 'The agent runs inside apps: it brings no package along.',
      severity: 'error',
      from: { path: '^agent/' },
      to: { pathNot: '^agent/', dependencyTypesNot: ['core'] }
    },
    {
      name: 'exporter-imports-the-wire-contract',
      comment: 'Nothing of the agent but its wire contract: the rest belongs to another process.',
      severity: 'error',
      from: { path: '^exporter/' },
      to: { path: '^agent/', pathNot: `^agent/(${WIRE})\\.js$|^agent/package\\.json$` }
    },
    {
      name: 'simulate-imports-the-lab',
      comment: 'The lab holds apps with problems: no part of production depends on it.',
      severity: 'error',
      from: { path: '^(agent|exporter)/', pathNot: '^exporter/cli/simulate\\.js$' },
      to: { path: '^lab/' }
    },
    {
      name: 'nothing-imports-development',
      comment: 'Tests, benches and scripts are not installed with the packages.',
      severity: 'error',
      from: { path: '^(agent|exporter|lab)/' },
      to: { path: '^(test|bench|scripts|dashboards)/' }
    },
    {
      name: 'lab-imports-itself-and-builtins',
      comment: 'Its apps run without memwatch, as any app does.',
      severity: 'error',
      from: { path: '^lab/' },
      to: { pathNot: '^lab/', dependencyTypesNot: ['core'] }
    },
    {
      name: 'pure-rooms-import-no-io',
      comment: 'The same frames lead to the same verdicts: live, replayed, and in a test.',
      severity: 'error',
      from: { path: `^exporter/(${PURE})/` },
      to: { dependencyTypes: ['core'], pathNot: `^(${COMPUTING_BUILTINS})$` }
    },
    {
      name: 'pure-rooms-import-no-sink',
      comment: 'A verdict does not know who reads it.',
      severity: 'error',
      from: { path: `^exporter/(${PURE})/` },
      to: { path: `^exporter/(${REPORTING})/|^exporter/(exporter|config)\\.js$` }
    },
    {
      name: 'imports-resolve',
      comment: 'An import that leads nowhere escapes all other rules.',
      severity: 'error',
      from: { path: '^(agent|exporter)/' },
      to: { couldNotResolve: true }
    }
  ],
  options: {
    exclude: { path: '^exporter/page/' },
    doNotFollow: { path: 'node_modules' },
    // A subpath that its package does not export is not found, as Node.js has it.
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['node', 'require', 'default'] }
  }
}
