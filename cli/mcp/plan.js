'use strict'

const { array, text } = require('@memwatch/engine/text/json-schema')
const { pathSegment } = require('../text/path-segment')
const { accept, argumentsOf, findTarget, ofTarget, queryOf } = require('./define-tool')

/** @typedef {import('./define-tool').Tool} Tool */

const texts = { ...array(text), maxItems: 8 }

/** @type {Tool} */
const plan = {
  name: 'plan',
  title: 'Heap sizes after an upgrade, with another limit or flag',
  description:
    'Computes the heap sizes that V8 chooses on another Node.js, under another memory limit or ' +
    'with other flags, with warnings. With a target, the plan starts from its present settings, ' +
    'which are the first row.',
  input: argumentsOf({
    target: ofTarget.target,
    node: { ...texts, description: 'versions, such as 24 or 22.23.3; required without a target' },
    memory: { ...texts, description: 'limits of the container, such as 512Mi or 1Gi' },
    flags: { ...text, description: 'flags as in NODE_OPTIONS, added to those of the target' },
    hostMemory: { ...text, description: 'memory of the machine, such as 16Gi' },
    cgroup: { enum: ['v1', 'v2'] }
  }),
  async answer (args, facts) {
    if (args.target !== undefined) await findTarget(facts, { target: args.target })
    return {
      rows: accept(
        await facts.call(`plan?${queryOf(args)}`), 'repeat with arguments that match the input ' +
          'schema'
      )
    }
  }
}

/** @type {Tool} */
const audit = {
  name: 'audit',
  title: 'Known memory bugs of the versions in use',
  description:
    'Names published memory bugs of Node.js and of packages, each with its condition, fixed ' +
    'version, workaround and thread. The versions are those of a target, or those in a lockfile ' +
    'of npm, pnpm or Yarn on this machine. A trap works as documented and leaks only in a certain ' +
    'use.',
  input: argumentsOf({
    ...ofTarget,
    lockfile: {
      ...text,
      description: 'path of a lockfile, or of a folder with one; without a target the default is the ' +
        'folder where memwatch mcp runs'
    },
    node: { ...text, description: 'Node.js that runs the lockfile, such as 24.17.0' }
  }),
  most: { bugs: 20, packages: 20, addons: 20 },
  async answer ({ target, thread, lockfile, node }, facts) {
    if (target === undefined) return facts.auditFolder(lockfile ?? '.', { node })
    const found = await findTarget(facts, { target, thread })
    return accept(
      await facts.call(`targets/${pathSegment(found.target)}/known-bugs?${queryOf({ thread })}`),
      'call targets'
    )
  }
}

module.exports = { audit, plan }
