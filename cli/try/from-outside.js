'use strict'

const { spawnSync } = require('node:child_process')
const path = require('node:path')
const { plainFlags } = require('@memwatch/agent/protocol/node-options')
const { isNodeFile } = require('@memwatch/exporter/process/process-view')
const { otherOptions } = require('@memwatch/engine/fixes/node-flag')

/**
 * Applies a change without editing the app: by its environment, or by the command line that starts
 * the app.
 *
 * @param {import('@memwatch/engine/diagnoses/define-diagnosis').Change} change
 * @param {object} of
 * @param {string[]} of.command command that starts the app
 * @param {import('@memwatch/agent/protocol/frame').Hello} of.hello hello of the process for which
 *   the change is made
 * @param {string} [of.nodeOptions] NODE_OPTIONS that the command gets in any case
 * @param {(library: string) => boolean} [of.loads] true if the dynamic loader finds a library
 * @returns {{ command: string[], env: Record<string, string> } | { reason: string }} reason: the
 *   reason why the change is impossible from outside
 */
function fromOutside (
  { flag, env, code, memoryLimitBytes, cpuLimitCores },
  { command, hello, nodeOptions = '', loads = loaderFinds }
) {
  if (code) return { reason: 'it is a change in the code' }
  // The reported NODE_OPTIONS of the running process has lost its quotes, so the change is added to
  // the NODE_OPTIONS of the command. Of equal options the last one takes effect.
  if (flag && env?.NODE_OPTIONS) {
    return { command, env: { NODE_OPTIONS: `${nodeOptions} ${flag}`.trimStart() } }
  }
  if (flag && isNode(command[0])) {
    return { command: withFlags(command, flag.split(' '), hello.execArgv), env: {} }
  }
  if (flag) {
    return {
      reason: `${flag} must be on the command line of node, as NODE_OPTIONS does not allow it or ` +
        `the command line sets it already; and ${command[0]} is not node`
    }
  }
  if (!env) {
    return {
      reason:
        memoryLimitBytes === undefined && cpuLimitCores === undefined
          ? 'it is a change of the image'
          : 'it is a change of the container'
    }
  }
  const missing = (env.LD_PRELOAD ?? '').split(/[: ]/).filter(library => library && !loads(library))
  if (missing.length > 0) {
    return {
      reason: `the loader does not find ${missing.join(', ')} on this ` +
        `machine${missing[0].includes('jemalloc')
          ? ' (Debian, Ubuntu: apt-get install ' +
          'libjemalloc2)'
            : ''}`
    }
  }
  return { command, env }
}

/** @param {string} file */
const isNode = file =>
  file === process.execPath || isNodeFile(path.basename(file, '.exe'))

/**
 * Returns the command line with these flags before the script. They replace flags of the same name.
 * @param {string[]} command
 * @param {string[]} flags
 * @param {readonly string[]} execArgv options that node removed from the command line
 */
function withFlags ([node, ...args], flags, execArgv) {
  const own = args.slice(0, execArgv.length)
  const isOwn = plainFlags(own).every((option, i) => option === execArgv[i])
  const kept = isOwn ? otherOptions(own, flags.map(flag => flag.split('=')[0])) : []
  return [node, ...kept, ...flags, ...isOwn ? args.slice(own.length) : args]
}

/**
 * Tests if the loader finds a library. The loader of glibc reports a missing library on stderr and
 * continues; the loader of musl does not start the program.
 * @param {string} library
 */
function loaderFinds (library) {
  if (process.platform !== 'linux') return false
  const { status, stderr } = spawnSync('/bin/sh', ['-c', ':'], {
    env: { LD_PRELOAD: library },
    encoding: 'utf8'
  })
  return status === 0 && stderr === ''
}

module.exports = { fromOutside }
