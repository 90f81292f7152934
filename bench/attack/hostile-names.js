'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFileSync, spawn } = require('node:child_process')
const { once } = require('node:events')
const { setTimeout: wait } = require('node:timers/promises')
const { gunzipSync } = require('node:zlib')
const { parseAllDocuments } = require('yaml')
const { line } = require('../../test/support/frames')
const { LOOPBACK, PORT } = require('./places')
const { connect, send, helloLine, frameLine } = require('./wire')

/**
 * @typedef {import('./stage').Stage} Stage
 * @typedef {import('./attacks').Claim} Claim
 */

const MEMWATCH = path.join(__dirname, '../../cli/memwatch.js')
/** A run that ends in a confirmed finding whose fix is NODE_OPTIONS. */
const RECORDING = path.join(
  __dirname,
  '../../test/recordings/20-semi-space-starvation-broken.ndjson.gz'
)
const CANARY = 'attacked'
const FORMATS = ['kubernetes', 'dockerfile', 'node-options']
const POD = { name: 'shop-5d4c7f9b8-x2k4q', namespace: 'store', container: 'app' }
const LONGEST_RUN_MS = 60_000
/** Pause between connections, and between commands: other attacks measure their cost. */
const PAUSE_MS = 250

/** Texts with a meaning in the language in which they are printed. */
const TEXTS = {
  'a YAML document': 'a\n---\nkind: ClusterRoleBinding\n---',
  'YAML fields':
    'app\n          image: evil.example/miner\n          securityContext: {privileged: true}',
  'a shell command': `$(touch\${IFS}${CANARY})`,
  'backquotes and quotes': `\`touch ${CANARY}\`'"; touch ${CANARY}; #`,
  'terminal escapes': '\u001b]0;owned\u0007\u001b[2Jgone',
  'bidi controls': 'abc\u202edcba\u2066',
  'a lone surrogate': '\ud800',
  'line separators and NUL': 'a\u2028b\u0000c\r\nd',
  Markdown: '| a |\n|---|\n`x` <img src=x onerror=alert(1)>'
}
/** Fields of a hello that contain text. @type {Record<string, (text: string) => object>} */
const FIELDS = {
  name: name => ({ name }),
  'pod.name': name => ({ pod: { ...POD, name } }),
  'pod.namespace': namespace => ({ pod: { ...POD, namespace } }),
  'pod.container': container => ({ pod: { ...POD, container } }),
  'pod.uid': uid => ({ pod: { ...POD, uid } }),
  host: host => ({ host }),
  nodeOptions: text => ({ nodeOptions: [`--title=${text}`] }),
  execArgv: text => ({ execArgv: [`--title=${text}`] }),
  mallocEnv: text => ({ mallocEnv: { LD_PRELOAD: text } }),
  node: node => ({ node }),
  allocatorPath: allocatorPath => ({ allocatorPath })
}
/** Characters that terminals and pages do not display as they are. */
const UNPRINTABLE =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/
const SAMPLE = /^[a-zA-Z_:][\w:]*(\{([a-zA-Z_]\w*="(\\["\\n]|[^"\\\n])*",?)*\})? \S+$/

/**
 * Sets every text of a hello to YAML, shell commands, terminal escapes or invalid Unicode, then
 * requests every output.
 * @param {Stage} stage
 */
async function hostileNames (stage) {
  const sockets = []
  const open = async () => {
    const socket = await connect(stage.socketOf('attacker'))
    if (socket) sockets.push(socket.resume())
    return socket
  }
  const recorded = readRecording()
  let number = 0
  for (const [what, text] of Object.entries(TEXTS)) {
    for (const [field, change] of Object.entries(FIELDS)) {
      const socket = await open()
      number++
      // Targets whose fix contains the text get a whole recorded run, so that they have a fix.
      const told =
        field === 'nodeOptions' ||
        (field.startsWith('pod.') && what.includes('YAML')) ||
        (field === 'name' && what !== 'Markdown')
      const changes = {
        name: `shop-${number}`,
        pid: 20_000_000 + number,
        startedAtUnixMs: number,
        pod: POD,
        ...change(text)
      }
      const lines = told
        ? [line({ ...recorded.hello, ...changes }) + '\n', ...recorded.frames]
        : [helloLine(number, changes), frameLine(1)]
      if (socket) await send(socket, lines.join(''))
      await wait(PAUSE_MS)
    }
  }
  await wait(15_000)

  /** @type {Claim[]} */
  const claims = []
  const check = (/** @type {string} */ text, /** @type {string | undefined} */ wrong) =>
    claims.push({ text, held: wrong === undefined, detail: wrong ?? '' })
  const { count, ill } = await checkApi(stage, check)
  await checkMetrics(stage, check)
  await checkCommands(stage, ill, check)
  for (const socket of sockets) socket.destroy()
  return {
    tried: `${number} hellos in which one of ${Object.keys(FIELDS).length} fields is ` +
      `${Object.keys(TEXTS).join(', ')}; ${count} targets result; metrics, API and ` +
        'command line are checked',
    claims
  }
}

/** @returns {{ hello: any, frames: string[] }} */
function readRecording () {
  const lines = gunzipSync(fs.readFileSync(RECORDING))
    .toString()
    .trim()
    .split('\n')
    .map(item => JSON.parse(item))
    .filter(({ session, line }) => session === 1 && line)
    .map(({ line }) => line)
  return {
    hello: lines.find(({ type }) => type === 'hello'),
    frames: lines.filter(({ type }) => type === 'frame').map(item => JSON.stringify(item) + '\n')
  }
}

/** @typedef {(text: string, wrong: string | undefined) => void} Check */

/**
 * @param {Stage} stage
 * @param {Check} check
 * @returns {Promise<{ count: number, ill: string[] }>} of targets; ill: names of those with a
 *   finding
 */
async function checkApi (stage, check) {
  let count = 0
  /** @type {string[]} */
  let ill = []
  for (const at of ['targets?limit=1000', 'diagnoses?limit=1000', 'deaths', 'captures']) {
    const { status, text } = await stage.api(at)
    const odd = status === 200 ? textsIn(JSON.parse(text)).filter(isOdd) : []
    check(
      `/api/v1/${at.split('?')[0]} answers 200, with printable Unicode only`,
      status !== 200
        ? `status ${status}`
        : odd.length > 0
          ? `${odd.length} texts, such as ${JSON.stringify(odd[0])}`
          : undefined
    )
    if (at.startsWith('targets') && status === 200) count = JSON.parse(text).length
    if (at.startsWith('diagnoses') && status === 200) {
      ill = JSON.parse(text)
        .filter((/** @type {any} */ { primary }) => primary)
        .map((/** @type {any} */ { target }) => target)
    }
  }
  return { count, ill: [...new Set(ill)] }
}

/**
 * @param {Stage} stage
 * @param {Check} check
 */
async function checkMetrics (stage, check) {
  const { status, text } = await stage.scrape()
  const samples = text.split('\n').filter(line => line !== '' && !line.startsWith('#'))
  const wrong = samples.find(line => !SAMPLE.test(line)) ?? samples.find(isOdd)
  const series = samples.map(line => line.slice(0, line.lastIndexOf(' ')))
  const twice = series.find(
    (one, i) => new Set(series).size < series.length && series.indexOf(one) !== i
  )
  check(
    '/metrics has valid samples of printable Unicode only, and each series once',
    status !== 200
      ? `status ${status}`
      : wrong
        ? JSON.stringify(wrong.slice(0, 200))
        : twice && `twice: ${JSON.stringify(twice.slice(0, 200))}`
  )
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-canary-'))
  const fixes = [...text.matchAll(/[{,]fix="((?:\\.|[^"\\])*)"/g)]
    .map(([, fix]) => fix.replace(/\\(.)/g, (_, c) => (c === 'n' ? '\n' : c)))
    .filter(fix => fix.startsWith('NODE_OPTIONS='))
  // Runs a shell line that only assigns a variable; an injected command would create a file in its
  // folder.
  for (const fix of fixes) execQuietly('/bin/sh', ['-c', fix], folder)
  check(
    `${fixes.length} fixes of memwatch_verdict_info run no command in a shell`,
    fs.readdirSync(folder).length > 0 ? `files were made: ${fs.readdirSync(folder)}` : undefined
  )
  fs.rmSync(folder, { recursive: true })
}

/**
 * @param {Stage} stage
 * @param {string[]} names
 * @param {Check} check
 */
async function checkCommands (stage, names, check) {
  const run = async (/** @type {string[]} */ args) => {
    const child = spawn(process.execPath, [MEMWATCH, ...args], {
      env: {
        ...process.env,
        NODE_OPTIONS: '',
        MEMWATCH_URL: `http://${LOOPBACK}:${PORT}`,
        MEMWATCH_TOKEN_FILE: stage.tokenFile
      },
      stdio: ['ignore', 'pipe', 'pipe']
    })
    const timer = setTimeout(() => child.kill('SIGKILL'), LONGEST_RUN_MS)
    let [stdout, stderr] = ['', '']
    child.stdout.setEncoding('utf8').on('data', text => {
      stdout += text
    })
    child.stderr.setEncoding('utf8').on('data', text => {
      stderr += text
    })
    const [status] = await once(child, 'close')
    clearTimeout(timer)
    await wait(PAUSE_MS)
    return { status, stdout, stderr }
  }
  for (const args of [['top', '--once'], ['last-death']]) {
    const { status, stdout, stderr } = await run(args)
    const wrong =
      status !== 0 && !(args[0] === 'last-death' && status === 1)
        ? `status ${status}: ${stderr.slice(0, 200)}`
        : oddOutput(stdout + stderr)
    check(`memwatch ${args.join(' ')} succeeds, and prints no terminal escapes`, wrong)
  }
  for (const format of FORMATS) {
    /** @type {string[]} */
    const wrong = []
    let printed = 0
    for (const name of names.filter(name => !name.includes('\u0000'))) {
      const { status, stdout, stderr } = await run(['fix', '--format', format, '--', name])
      if (status === 0) printed++
      const found =
        ![0, 1, 2].includes(status) || /\n {4}at /.test(stderr)
          ? `status ${status}: ${stderr.slice(0, 200)}`
          : (oddOutput(stdout + stderr) ??
            (format === 'kubernetes' && status === 0 ? oddManifest(stdout) : undefined))
      if (found) wrong.push(`${JSON.stringify(name)}: ${found}`)
    }
    check(
      `memwatch fix --format ${format} prints ${printed} patches that contain only the fix`,
      wrong.length > 0 ? `${wrong.length}, such as ${wrong[0]}` : undefined
    )
  }
}

/**
 * @param {string} text
 * @returns {string | undefined} description of the defect; empty if there is none
 */
const oddOutput = text =>
  UNPRINTABLE.test(text) || text.includes('\ufffd')
    ? `prints ${JSON.stringify(UNPRINTABLE.exec(text)?.[0] ?? '\ufffd')}`
    : undefined

/**
 * @param {string} text
 * @returns {string | undefined} description of the defect; empty if there is none
 */
function oddManifest (text) {
  const documents = parseAllDocuments(text)
  if (documents.length !== 1) return `${documents.length} documents`
  if (documents[0].errors.length > 0) return documents[0].errors[0].message.slice(0, 200)
  const { apiVersion, kind, metadata, spec, ...more } = documents[0].toJS()
  const container = spec?.template?.spec?.containers?.[0] ?? {}
  const unknown = [
    ...Object.keys(more),
    ...Object.keys(container).filter(key => !['name', 'env', 'resources'].includes(key)),
    ...Object.keys(metadata ?? {}).filter(key => !['name', 'namespace'].includes(key))
  ]
  if (unknown.length > 0) return `holds ${unknown}`
  return apiVersion === 'apps/v1' && ['Deployment', 'StatefulSet', 'DaemonSet'].includes(kind)
    ? undefined
    : `is a ${kind}`
}

/**
 * All texts in a value, including keys.
 * @param {any} value
 * @returns {string[]}
 */
function textsIn (value) {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, item]) => [key, ...textsIn(item)])
}

/** @param {string} text */
const isOdd = text =>
  UNPRINTABLE.test(text) ||
  /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|\ufffd/.test(text)

/**
 * @param {string} file
 * @param {string[]} args
 * @param {string} cwd
 */
function execQuietly (file, args, cwd) {
  try {
    execFileSync(file, args, {
      cwd,
      stdio: 'ignore',
      timeout: 5000,
      env: { PATH: '/usr/bin:/bin' }
    })
  } catch {
    /* The attack checks only which files are left in the folder. */
  }
}

module.exports = { hostileNames }
