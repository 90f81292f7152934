'use strict'

const { flagsInForce } = require('./flags')
const { has } = require('./node-versions')
const { takesInNodeOptions, isKnownFlag, TAKEN_SINCE } = require('./node-options')

const PERCENTAGE = '--max-old-space-size-percentage'
/** Name of the size that each V8 flag sets. */
const SIZES = /** @type {const} */ ({ '--max-old-space-size': 'oldMb', '--max-semi-space-size': 'semiMb', '--max-heap-size': 'heapMb' })
/** Flags that make V8 use semi-spaces of a MB, whatever --max-semi-space-size says. */
const SMALL = ['--optimize-for-size', '--lite-mode']

/**
 * Effect of flags on one version of Node.js.
 * @typedef {object} PlannedFlags
 * @property {import('./sizes-under-flags').SizeFlags} sizes of the accepted flags; flags that
 *   this version refuses are left out
 * @property {number | undefined} percent --max-old-space-size-percentage
 * @property {string[]} refusals sentences: the reasons why Node.js would not start
 * @property {string[]} unknown flags whose effect is unknown
 */

/**
 * @param {import('./node-versions').NodeVersion} version
 * @param {{ nodeOptions: string[], execArgv: string[] }} given
 * @returns {PlannedFlags}
 */
function plannedFlags (version, { nodeOptions, execArgv }) {
  const node = `Node ${version.text}`
  const flags = flagsInForce({ nodeOptions, execArgv })
  /** @type {PlannedFlags} */
  const planned = {
    sizes: {},
    percent: undefined,
    refusals: [],
    unknown: [...flags.keys()].filter(name => !isKnownFlag(name))
  }
  const { sizes, refusals } = planned

  const knowsPercentage = has(version, TAKEN_SINCE[PERCENTAGE])
  if (flags.has(PERCENTAGE)) {
    const value = flags.get(PERCENTAGE) ?? ''
    const percent = /^\d+(\.\d+)?$/.test(value) ? Number(value) : NaN
    if (!knowsPercentage) {
      refusals.push(
        `${node} does not know ${PERCENTAGE} and would not start. The numbers ignore the flag.`
      )
    } else if (percent > 0 && percent <= 100) planned.percent = percent
    else {
      refusals.push(
        `${PERCENTAGE} needs a number above 0 and up to 100, not ${JSON.stringify(value)}: ` +
          `${node} would not start. The numbers ignore the flag.`
      )
    }
  }
  for (const name of new Set(flagsInForce({ nodeOptions, execArgv: [] }).keys())) {
    if (takesInNodeOptions(version, name) || (name === PERCENTAGE && !knowsPercentage)) continue
    refusals.push(
      `${node} does not accept ${name} in NODE_OPTIONS and would not start.` +
        (Object.hasOwn(SIZES, name) || SMALL.includes(name)
          ? ' The numbers are for the command line, which accepts it.'
          : '')
    )
  }
  for (const [name, size] of Object.entries(SIZES)) {
    const value = flags.get(name)
    if (value === undefined) continue
    const bare = [...nodeOptions, ...execArgv].some(arg => arg.replaceAll('_', '-') === name)
    // V8 treats 0 and negative values as unset.
    if (/^-?\d{1,9}$/.test(value) && !bare) sizes[size] = Math.max(0, Number(value))
    else {
      refusals.push(
        `${name} needs whole MB after =, not ${JSON.stringify(value)}: ${node} would not start. ` +
          'The numbers ignore the flag.'
      )
    }
  }
  if (sizes.oldMb && sizes.semiMb && sizes.heapMb) {
    sizes.heapMb = 0
    refusals.push(
      `V8 ends at start with ${Object.keys(SIZES).join(', ')} together. The numbers ignore the ` +
        'last one.'
    )
  }
  if (SMALL.some(name => flags.has(name))) sizes.semiMb = 1
  return planned
}

module.exports = { plannedFlags, PERCENTAGE }
