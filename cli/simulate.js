'use strict'

const fs = require('node:fs')
const os = require('node:os')
const { Command } = require('commander')
const { closest, distance } = require('fastest-levenshtein')
const { createContainerGroup } = require('@memwatch/exporter/process/container-group')
const { createMemoryGroup } = require('@memwatch/exporter/process/memory-group')
const { formatBytes } = require('@memwatch/engine/text/format')
const { withReportOptions, runAndReport } = require('./run')
const { err } = require('./program/output')
const { UsageError, readBytes } = require('./program/usage-error')

/**
 * Flags for machines that allow no memory cgroup: sizes that V8 chooses in 512 MiB (Node 20 to 25).
 * Later options on the command line override these.
 */
const SIZES_OF_THE_CONTAINER = ['--max-semi-space-size=1', '--max-old-space-size=256']

/** Smallest CPU quota: with less, Node.js takes longer to start than the apps run. */
const LEAST_CORES = 0.05
/** Smallest memory limit, of which Node.js itself uses half. */
const LEAST_LIMIT_BYTES = 64 * 2 ** 20

const command = withReportOptions(new Command('simulate'))
  .description(
    'Run a small real app with a memory problem, or a healthy look-alike, and diagnose it.'
  )
  .argument('<name>', 'a diagnosis, healthy, or the name of an app below')
  .option('--node <FILE>', 'Node.js binary that runs the app (default: this one)')
  .option(
    '--node-option <OPTION...>',
    'options of Node.js, to try a fix: --node-option=--max-semi-space-size=16'
  )
  .option(
    '--memory <SIZE>',
    'memory limit, such as 512Mi, to try a larger container (default: the limit made for the app)'
  )
  .option(
    '--cpus <CORES>',
    'CPU quota of the app without its clients, to try a slow pod, from 0.05 (default: that of ' +
      'the app, or none)'
  )
  .option('--fixed', 'run the app without the defect in its code')
  .allowExcessArguments(false)
  .addHelpText('after', listApps)
  .addHelpText(
    'after',
    `
The app runs in a memory cgroup with the limit of its container, if this machine allows it. To try
an alert, let your Prometheus scrape the run: --listen 0.0.0.0:16369.

Exit status: the same as that of memwatch run.

Examples:
  $ memwatch simulate semi-space-starvation
  $ memwatch simulate semi-space-starvation --node-option=--max-semi-space-size=16
  $ memwatch simulate healthy`
  )
  .action(async (name, given) => {
    process.exitCode = await simulate(name, given)
  })

/** @param {import('@memwatch/lab').LabApp} app */
const isHealthy = ({ diagnosis, opportunity }) => diagnosis === null && opportunity === undefined

/** List of the apps for --help, if they are installed. @returns {string} */
function listApps () {
  try {
    const apps = loadApps()
    const widest = Math.max(...apps.map(({ id }) => id.length))
    return `\nApps:\n${apps.map(({ id, title }) => `  ${id.padEnd(widest)}  ${title}`).join('\n')}`
  } catch (error) {
    return `\n${/** @type {Error} */ (error).message}`
  }
}

/**
 * Loads the apps. They are a package of their own, which is absent in production.
 * @returns {readonly import('@memwatch/lab').LabApp[]}
 * @throws {UsageError} if it is absent
 */
function loadApps () {
  try {
    return require('@memwatch/lab').apps
  } catch (error) {
    /** @type {NodeJS.ErrnoException & { requireStack?: string[] }} */
    const { code, requireStack } = Object(error)
    if (code !== 'MODULE_NOT_FOUND' || requireStack?.[0] !== __filename) throw error
    throw new UsageError('simulate: the package with the apps is missing; run npm install @memwatch/lab')
  }
}

/**
 * @param {string} name
 * @param {import('./run').ReportOptions & { node?: string, nodeOption?: string[], memory?: string,
 *   cpus?: string, fixed?: boolean }} given
 * @returns {Promise<number>} exit status
 */
async function simulate (name, given) {
  const app = findByName(name)
  if (given.fixed && app.fixedBy !== 'code') {
    throw new UsageError(
      `--fixed: ${app.id} has no repaired form; apply the fix that its report prints by ` +
        '--node-option or an environment variable'
    )
  }
  checkNode(given.node)
  const limitBytes = given.memory === undefined ? app.memoryLimitBytes : readLimit(given.memory)
  const groupName = `simulate-${app.id}`
  const cpus = given.cpus ?? app.cpus?.toString()
  const slowPod =
    cpus === undefined
      ? undefined
      : slowPodOf({
        memoryBytes: limitBytes,
        cores: readCores(cpus),
        onParent: app.limitOnParent,
        name: groupName
      })
  const group =
    slowPod ?? createMemoryGroup({ limitBytes, onParent: app.limitOnParent, name: groupName })
  try {
    err.say(`memwatch: ${app.title}. ${app.about}`)
    err.say(
      group.supported
        ? 'memwatch: in a memory cgroup of ' +
          `${formatBytes(limitBytes)}${cpus === undefined ? '' : `, with a CPU limit of ${cpus}`}`
        : `memwatch: cannot create a memory cgroup of ${formatBytes(limitBytes)} here ` +
          `(${group.reason}); V8 gets the sizes it would choose in one: ` +
            `${SIZES_OF_THE_CONTAINER.join(' ')}`
    )
    const seconds = given.for ?? String(app.seconds)
    const node = given.node ?? process.execPath
    const args = [
      ...(group.supported ? [] : SIZES_OF_THE_CONTAINER),
      ...(app.nodeArgs ?? []),
      ...(given.nodeOption ?? []),
      app.script,
      ...(given.fixed ? ['--fixed'] : [])
    ]
    const wrapped = group.wrap(node, args)
    return await runAndReport([wrapped.command, ...wrapped.args], { ...given, for: seconds }, {
      env: { MEMWATCH_NAME: app.id, ...slowPod && { MEMWATCH_LAB_CLIENTS: slowPod.clientsPath } },
      shown: [node, ...args]
    })
  } finally {
    await group.remove()
  }
}

/**
 * Checks the Node.js binary before the cgroup exists: inside the cgroup a shell starts it, and its
 * error would name the cgroup instead.
 * @param {string} [file] path of the binary, or a name that is searched in PATH
 * @throws {UsageError}
 */
function checkNode (file) {
  if (!file?.includes('/')) return
  try {
    fs.accessSync(file, fs.constants.X_OK)
    if (fs.statSync(file).isFile()) return
  } catch {
    // The file is absent or not executable.
  }
  throw new UsageError(`--node: expected an executable file, got ${JSON.stringify(file)}`)
}

/**
 * @param {string} text
 * @returns {number} bytes
 * @throws {UsageError}
 */
function readLimit (text) {
  const bytes = readBytes('--memory', text)
  if (bytes >= LEAST_LIMIT_BYTES) return bytes
  throw new UsageError(`--memory: expected at least 64Mi, got ${JSON.stringify(text)}`)
}

/**
 * @param {string} text
 * @returns {number}
 * @throws {UsageError}
 */
function readCores (text) {
  const cores = Number(text)
  if (!(cores >= LEAST_CORES && cores <= os.availableParallelism())) {
    throw new UsageError(
      `--cpus: expected a number of cores from ${LEAST_CORES} to the ` +
        `${os.availableParallelism()} of this machine, got ${JSON.stringify(text)}`
    )
  }
  return cores
}

/**
 * @param {Parameters<typeof createContainerGroup>[0]} limits
 * @throws {UsageError}
 */
function slowPodOf (limits) {
  try {
    return createContainerGroup(limits)
  } catch (error) {
    throw new UsageError(`--cpus: ${/** @type {Error} */ (error).message}`)
  }
}

/**
 * @param {string} name
 * @throws {UsageError}
 */
function findByName (name) {
  const apps = loadApps()
  const app = apps.find(({ id }) => id === name) ??
    apps.find(name === 'healthy' ? isHealthy : ({ diagnosis }) => diagnosis === name)
  if (app) return app
  const names = ['healthy', ...apps.map(({ id }) => id)]
  const nearest = names.find(other => name !== '' && other.startsWith(name)) ?? closest(name, names)
  const isClose = nearest.startsWith(name) || distance(name, nearest) <= nearest.length / 2
  throw new UsageError(
    `simulate: no app ${JSON.stringify(name)}${isClose ? `; did you mean ${nearest}?` : ''} ` +
      '(memwatch simulate --help lists them)'
  )
}

module.exports = { command }
