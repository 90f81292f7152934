'use strict'

// The import rules of ARCHITECTURE.md, checked by `npm run imports` on the real imports.

/** Builtins that compute: all others reach files, the network, the machine or other processes. */
const COMPUTING_BUILTINS = 'buffer|events|path|url|util|zlib'
/** The packages that are installed in production. */
const PACKAGES = 'agent|cli|engine|exporter|mcp|otlp'
/** The wire contract, the one thing of the agent that other packages import. */
const PROTOCOL = '^agent/(protocol/|package\\.json$)'

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
      name: 'no-circle-of-folders',
      comment: 'Each folder of a package is above or below another one, never both.',
      severity: 'error',
      scope: 'folder',
      from: { path: '^(cli|engine|exporter)/' },
      to: { circular: true, path: '^(cli|engine|exporter)/' }
    },
    {
      name: 'agent-imports-itself-and-builtins',
      comment: 'The agent runs inside apps: it brings no package along.',
      severity: 'error',
      from: { path: '^agent/' },
      to: { pathNot: '^agent/', dependencyTypesNot: ['core'] }
    },
    {
      name: 'others-import-the-protocol-of-the-agent',
      comment: 'Nothing of the agent but its wire contract: the rest belongs to another process.',
      severity: 'error',
      from: { path: '^(cli|engine|exporter)/' },
      to: { path: '^agent/', pathNot: PROTOCOL }
    },
    {
      name: 'engine-imports-the-protocol-alone',
      comment: 'A verdict knows neither who reads it nor where its frames come from.',
      severity: 'error',
      from: { path: '^engine/' },
      to: { path: '^(cli|exporter)/' }
    },
    {
      name: 'engine-imports-no-io',
      comment: 'The same frames lead to the same verdicts: live, replayed, and in a test.',
      severity: 'error',
      from: { path: '^engine/' },
      to: { dependencyTypes: ['core'], pathNot: `^(${COMPUTING_BUILTINS})$` }
    },
    {
      name: 'exporter-imports-no-cli',
      comment: 'The command line starts the exporter, never the other way round.',
      severity: 'error',
      from: { path: '^exporter/' },
      to: { path: '^cli/' }
    },
    {
      name: 'simulate-imports-the-lab',
      comment: 'The lab holds apps with problems: no part of production depends on it.',
      severity: 'error',
      from: { path: `^(${PACKAGES})/`, pathNot: '^cli/simulate\\.js$' },
      to: { path: '^lab/' }
    },
    {
      name: 'otlp-brings-opentelemetry-alone',
      comment: 'It is absent where nobody asked for it: only the sink of that name may load it.',
      severity: 'error',
      from: { pathNot: '^(otlp|exporter/otlp)/' },
      to: { path: '^otlp/|/@opentelemetry/' }
    },
    {
      name: 'mcp-brings-the-sdk-alone',
      comment: 'It is absent where no assistant asks: only the command of that name may load it.',
      severity: 'error',
      from: { path: `^(${PACKAGES})/`, pathNot: '^(mcp/|cli/mcp\\.js$)' },
      to: { path: '^mcp/|/@modelcontextprotocol/' }
    },
    {
      name: 'nothing-imports-development',
      comment: 'Tests, benches and scripts are not installed with the packages.',
      severity: 'error',
      from: { path: `^(${PACKAGES}|lab)/` },
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
      name: 'imports-resolve',
      comment: 'An import that leads nowhere escapes all other rules.',
      severity: 'error',
      from: { path: `^(${PACKAGES})/` },
      to: { couldNotResolve: true }
    }
  ],
  options: {
    exclude: { path: '^exporter/page/' },
    doNotFollow: { path: 'node_modules' },
    // A subpath that its package does not export is not found, as Node.js has it.
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['node', 'require', 'default']
    }
  }
}
