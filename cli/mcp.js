'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { Command } = require('commander')
const { version } = require('@memwatch/exporter/package.json')
const { defaultMemory, retainersOf } = require('@memwatch/exporter/captures/retainers')
const { withApiOptions, callApi, callList } = require('./program/api')
const { auditFolder } = require('./audit')
const { ToolError } = require('./mcp/define-tool')
const { createMcpServer } = require('./mcp/server')
const { checkFile } = require('./retainers')
const { out, err } = require('./program/output')
const { UsageError } = require('./program/usage-error')

/** Time limit of an exporter's answer. */
const TIMEOUT_MS = 20_000
/** Time limit for pending answers after the client has closed stdin. */
const GRACE_MS = 2000
/** Folder of this agent, whose own objects are not reported. */
const agentFolder = path.dirname(require.resolve('@memwatch/agent/package.json'))

const command = withApiOptions(new Command('mcp'))
  .description(
    'Answer questions of AI assistants about targets, by the Model Context Protocol on stdin and ' +
      'stdout.'
  )
  .option(
    '--recording <FILE>',
    'answer from a recording, a GC log or a diagnostic report, instead of an exporter'
  )
  .option('--allow-captures', 'also offer the tool that profiles a running app (default: read only)')
  .allowExcessArguments(false)
  .addHelpText(
    'after',
    `
An assistant starts this command from its own configuration; docs/mcp.md has examples. It needs the
package @memwatch/mcp. All tools only read, unless --allow-captures is given. The command ends when
stdin closes.

Exit status: 0; 2 when an option is invalid, the recording cannot be read, or the package is
missing.

Examples:
  $ npm install --save-dev @memwatch/cli @memwatch/mcp
  $ claude mcp add memwatch -- npx @memwatch/cli mcp --url http://127.0.0.1:16369
  $ memwatch mcp --url http://10.0.0.7:16369 --token-file token
  $ memwatch mcp --recording app.recording.gz
  $ kubectl exec -i shop-5d4c7f9b8-x2k4q -c memwatch -- memwatch mcp`
  )
  .action(serve)

/**
 * @typedef {import('./program/api').ApiOptions & { recording?: string, allowCaptures?: boolean }} Given
 */

/** @param {Given} given */
async function serve (given) {
  const sdk = loadSdk()
  const { recording, allowCaptures = false } = given
  const api = { ...given, timeoutMs: TIMEOUT_MS }
  if (recording !== undefined) api.fetch = /** @type {any} */ (await openRecording(recording))
  const server = createMcpServer(sdk, {
    version,
    isRecording: recording !== undefined,
    allowsCaptures: allowCaptures,
    facts: {
      call: explain((path, method) => callApi(api, path, method)),
      list: explain(path => callList(api, path)),
      auditFolder: explain(auditLockfile),
      readSnapshot: explain(readSnapshot)
    }
  })
  server.onerror = error => err.say(`memwatch mcp: cannot read a message: ${error.message}`)
  await server.connect(new sdk.StdioServerTransport(process.stdin, out.stream))
  // The SDK does not end by itself when the client has closed stdin.
  process.stdin.once('end', end).once('error', end)
}

/**
 * Wraps a function so that errors of use become a ToolError, which an assistant can show.
 * @template {any[]} Args
 * @template Result
 * @param {(...args: Args) => Promise<Result>} act
 * @returns {(...args: Args) => Promise<Result>} throws a ToolError
 */
const explain = act => async (...args) => {
  try {
    return await act(...args)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    throw new ToolError(error.message, 'tell the person who started memwatch mcp')
  }
}

/** Ends the process when the pending answers are written, or after GRACE_MS. */
function end () {
  process.stdin.destroy()
  setTimeout(() => process.exit(0), GRACE_MS).unref()
}

/**
 * Loads the SDK, a package of its own that most installations lack.
 * @returns {typeof import('@memwatch/mcp')}
 * @throws {UsageError} if the package is absent
 */
function loadSdk () {
  try {
    return require('@memwatch/mcp')
  } catch (error) {
    /** @type {NodeJS.ErrnoException & { requireStack?: string[] }} */
    const { code, requireStack } = Object(error)
    if (code !== 'MODULE_NOT_FOUND' || requireStack?.[0] !== __filename) throw error
    throw new UsageError('mcp: the package with the SDK is missing; run npm install @memwatch/mcp')
  }
}

/**
 * @param {string} file
 * @returns {Promise<(url: URL | string) => Promise<Response>>} API over the recording, with the
 *   signature of fetch
 * @throws {UsageError}
 */
async function openRecording (file) {
  // These modules load the diagnoses and an HTTP server, which a client of an exporter does not
  // need.
  const { RecordingError } = require('@memwatch/engine/recording/replay')
  const { replayedApi } = require('@memwatch/exporter/expose/replayed')
  const { judgeFiles } = require('./diagnose')
  const { SourceError } = require('./sources')
  if (file === '-') throw new UsageError('--recording: expected a file, got -: the client writes to stdin')
  try {
    const { targets } = await judgeFiles([file], {}, () => {})
    return replayedApi(targets)
  } catch (error) {
    if (error instanceof SourceError || error instanceof RecordingError) {
      throw new UsageError(`--recording: ${error.message}`)
    }
    throw error
  }
}

/**
 * @param {string} where a lockfile, or a folder with one
 * @param {{ node?: string }} options
 * @throws {UsageError}
 */
async function auditLockfile (where, options) {
  if (!fs.existsSync(where)) throw new UsageError(`cannot read ${where}: no such file`)
  return auditFolder(where, options)
}

/**
 * The last analysis. An analysis takes up to 1.5 GiB, so the next one waits for it.
 * @type {Promise<unknown>}
 */
let analysis = Promise.resolve()

/**
 * @param {string} file
 * @param {string | undefined} earlier
 * @param {AbortSignal} signal
 * @throws {UsageError}
 */
async function readSnapshot (file, earlier, signal) {
  for (const one of earlier === undefined ? [file] : [earlier, file]) checkFile(one)
  const found = analysis.then(() => analyse(file, earlier, signal))
  analysis = found.catch(() => {})
  return found
}

/**
 * @param {string} file
 * @param {string | undefined} earlier
 * @param {AbortSignal} signal
 */
function analyse (file, earlier, signal) {
  return retainersOf(fs.realpathSync(file), {
    ...earlier !== undefined && {
      earlier: { file: fs.realpathSync(earlier), atUnixMs: fs.statSync(earlier).mtimeMs }
    },
    agentFolder,
    allowedBytes: defaultMemory(),
    signal
  })
}

module.exports = { command }
