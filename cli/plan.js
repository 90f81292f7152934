'use strict'

const { Command } = require('commander')
const { formatMebibytes } = require('@memwatch/engine/text/format')
const { wrap } = require('./text/wrap')
const { plan } = require('@memwatch/engine/v8/plan')
const { readPlanArguments, PlanArgumentError } = require('@memwatch/exporter/expose/plan-request')
const { withApiOptions, callApi } = require('./program/api')
const { out } = require('./program/output')
const { UsageError } = require('./program/usage-error')

/**
 * @param {string} text
 * @param {string[]} before
 */
const collect = (text, before = []) => [...before, text]

const command = withApiOptions(new Command('plan'))
  .description(
    'Print the heap sizes that V8 chooses on another Node.js, under another memory limit or with ' +
      'other flags, with warnings.'
  )
  .argument(
    '[target]',
    'name of a target, as memwatch top lists it: the plan uses its version, limit and flags'
  )
  .option('--node <VERSIONS>', 'current and planned versions, such as 18,24; with a target only ' +
    'planned versions, such as 24 or 22.23.3', collect)
  .option(
    '--memory <LIMITS>',
    'memory limit of the container, such as 512Mi; for several, 512Mi,1Gi or a repeated option',
    collect
  )
  .option('--flags <FLAGS>', 'flags as in NODE_OPTIONS, such as "--max-old-space-size=384"; ' +
    'added to the flags of the target')
  .option(
    '--host-memory <MEMORY>',
    'memory of the machine, such as 16Gi, used if Node.js sees no limit (default: memory of this ' +
      'machine)'
  )
  .option('--cgroup <VERSION>', 'cgroup version, v1 or v2 (default: v2, where Node.js 18 sees no limit)')
  .option('--json', 'print the rows as JSON on stdout, and nothing else')
  .allowExcessArguments(false)
  .addHelpText(
    'after',
    `
The plan is valid for 64-bit Node.js without pointer compression. Node.js reads only the limit of
its own cgroup, not that of a parent.

Exit status: 0, with or without warnings; 2 when an option is invalid, the exporter cannot be
reached, or the target does not exist.

Examples:
  $ memwatch plan --node 18,24 --memory 512Mi
  $ memwatch plan --node 22 --memory 512Mi,1Gi --flags '--max-old-space-size=384'
  $ memwatch plan --node 20,24 --host-memory 16Gi
  $ memwatch plan shop --memory 256Mi
  $ memwatch plan shop --node 24 --json | jq -r '.[].warnings[]'`
  )
  .action(async (target, given) => {
    const rows = target === undefined ? planHere(given) : await planThere(target, given)
    if (given.json) out.json(rows)
    else out.say(...render(rows, { width: Math.min(out.columns || 100, 120) }))
  })

/**
 * @typedef {import('./program/api').ApiOptions & import('@memwatch/exporter/expose/plan-request').PlanArguments & { json?:
 *   boolean }} Given
 */

/**
 * @param {Given} given
 * @param {{ ofTarget?: boolean }} [options]
 * @throws {UsageError}
 */
function read (given, options) {
  try {
    return readPlanArguments(given, options)
  } catch (error) {
    if (!(error instanceof PlanArgumentError)) throw error
    throw new UsageError(
      `--${error.argument === 'hostMemory' ? 'host-memory' : error.argument}: ${error.message}`
    )
  }
}

/**
 * @param {Given} given
 * @returns {import('@memwatch/engine/v8/plan').PlanRow[]}
 */
function planHere (given) {
  const { nodeOptions, cgroup = 'v2', ...asked } = read(given)
  return plan({ ...asked, cgroup, flags: { nodeOptions, execArgv: [] } })
}

/**
 * @param {string} target
 * @param {Given} given
 * @returns {Promise<import('@memwatch/engine/v8/plan').PlanRow[]>}
 */
async function planThere (target, given) {
  // Arguments are checked here first, so that errors name the options of the command line.
  read(given, { ofTarget: true })
  const { node = [], memory = [], flags, hostMemory, cgroup } = given
  const query = new URLSearchParams({ target })
  for (const text of node) query.append('node', text)
  for (const text of memory) query.append('memory', text)
  for (const [name, text] of Object.entries({ flags, hostMemory, cgroup })) {
    if (text !== undefined) query.set(name, text)
  }
  const { body, refused } = await callApi(given, `plan?${query}`)
  if (refused) throw new UsageError(refused)
  return body
}

const HEADS = ['node', 'memory limit', 'heap limit', 'old generation', 'semi-space', 'new space']

/**
 * @param {import('@memwatch/engine/v8/plan').PlanRow[]} rows
 * @param {{ width: number }} options
 * @returns {string[]} lines
 */
function render (rows, { width }) {
  const names = rows.map(({ node, running }) => running ? `${node} (now)` : node)
  const cells = rows.map(
    (
      { memoryLimitBytes, heapSizeLimitBytes, oldGenerationBytes, semiSpaceBytes, newSpaceBytes },
      i
    ) => [
      names[i],
      memoryLimitBytes === null ? 'none' : formatMebibytes(memoryLimitBytes),
      ...[heapSizeLimitBytes, oldGenerationBytes, semiSpaceBytes, newSpaceBytes].map(bytes =>
        bytes === null ? '?' : formatMebibytes(bytes)
      )
    ]
  )
  const widths = HEADS.map((head, i) => Math.max(head.length, ...cells.map(row => row[i].length)))
  const line = (/** @type {string[]} */ row) => row.map((cell, i) => i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i])).join('  ').slice(0, width)
  const lines = [line(HEADS), ...cells.map(line)]
  rows.forEach(({ warnings }, i) => {
    if (warnings.length === 0) return
    lines.push(
      '',
      `${names[i]} ${cells[i][1] === 'none' ? 'without a limit' : `at ${cells[i][1]}`}`
    )
    for (const warning of warnings) lines.push(...wrap(`- ${warning}`, width, 2))
  })
  return lines
}

module.exports = { command, render }
