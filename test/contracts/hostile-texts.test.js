'use strict'

const fs = require('node:fs')
const http = require('node:http')
const os = require('node:os')
const path = require('node:path')
const { once } = require('node:events')
const { gunzipSync } = require('node:zlib')
const { Profile } = require('pprof-format')
const { splitNodeOptions } = require('@memwatch/agent/protocol/node-options')

/** True to bypass the decoder, so that the second line of defence is tested alone. */
let mockIsOpen = false
jest.mock('../../engine/decode/decode', () => {
  const border = jest.requireActual('../../engine/decode/decode')
  return {
    ...border,
    decode: line => (mockIsOpen ? { ok: true, message: JSON.parse(line) } : border.decode(line)),
    check: message => (mockIsOpen ? { ok: true, message } : border.check(message))
  }
})

const { findCase } = require('../../engine/verdicts/case')
const { program } = require('../../cli/memwatch')
const { DataFolder } = require('../../exporter/data-folder/data-folder')
const { Load } = require('../../exporter/self-care/load')
const { startExporter, eventually } = require('../support/exporter')
const { defined } = require('../support/defined')
const { hello, frame, line } = require('../support/frames')
const { connectMcp } = require('../support/mcp-client')
const { memwatch } = require('../support/memwatch')
const { startOtlpReceiver } = require('../support/otlp-receiver')
const {
  unprintableIn,
  yamlDocument,
  shellReads,
  dockerfileVariables,
  exposition,
  markdownTable
} = require('../support/strict-readers')

/** Texts that break out of a language when printed unquoted. */
const TEXTS = [
  '\n---\nx',
  '$(id)',
  '$(touch PWNED)',
  '\u001b[2J',
  '\ud800',
  '\udfff',
  '<img onerror>',
  "'; rm -rf x #",
  '`touch PWNED`',
  'a|b',
  '\u202egnp',
  '\u0085- x\u2028y',
  'x\n          image: evil.example/miner\n          securityContext: {privileged: true}'
]
const ALL = TEXTS.join(' ')
/**
 * Fields on which rules branch. They stay valid, because other values would lead to no finding and
 * no fix to print.
 */
const READ_BY_RULES = ['node', 'v8', 'platform', 'arch', 'libc', 'allocator']
const OPTION = '--enable-source-maps'

/**
 * Creates a hello in which every text is the given one.
 * @param {string} text
 * @param {object} [changes]
 */
function hostileHello (text, changes = {}) {
  const plain = { ...hello(), host: '', allocatorPath: '', allocatorAccess: '', commands: [] }
  const texts = Object.fromEntries(
    Object.entries(plain)
      .filter(
        ([name, value]) => name !== 'type' && (typeof value === 'string' || Array.isArray(value))
      )
      .map(([name, value]) => [name, Array.isArray(value) ? [text] : text])
  )
  return {
    ...plain,
    ...texts,
    nodeOptions: [`--title=${text}`, text, '--require', `/srv/${text}/memwatch/agent`, OPTION],
    mallocEnv: { LD_PRELOAD: `${text}:libok.so`, [text]: text },
    allowedFlags: [...plain.allowedFlags, text],
    pod: { uid: text, name: `${text}-5d4c7f9b8-x2k4q`, namespace: text, container: text },
    ...changes
  }
}

const RECORDINGS = path.join(__dirname, '../recordings')
const recorded = Object.fromEntries(
  [
    '20-semi-space-starvation',
    '24-allocator-fragmentation',
    '20-container-limit-mismatch',
    '22-pointer-compression-candidate'
  ].map(name => {
    const lines = gunzipSync(fs.readFileSync(path.join(RECORDINGS, `${name}-broken.ndjson.gz`)))
      .toString()
      .trim()
      .split('\n')
      .map(text => JSON.parse(text))
    return [
      name,
      lines.filter(({ line, session }) => line && session === 1).map(({ line }) => line)
    ]
  })
)

/**
 * Creates the same hello for an app with a problem.
 * @param {string} name of the recording
 * @param {string} text
 * @param {object} [changes]
 */
function illHello (name, text, changes = {}) {
  const { allowedFlags, ...known } = recorded[name].find(({ type }) => type === 'hello')
  const read = Object.fromEntries(READ_BY_RULES.map(field => [field, known[field]]))
  return {
    ...known,
    ...hostileHello(text),
    ...read,
    ...(known.constrainedBytes && { constrainedBytes: known.constrainedBytes }),
    hostMemoryBytes: known.hostMemoryBytes,
    allowedFlags,
    ...changes
  }
}

/**
 * The recording used for many targets ends soon after its verdict is confirmed.
 * @param {string} name of the recording
 */
const framesOf = name => recorded[name]
  .filter(({ type }) => type === 'frame')
  .slice(0, name === '20-semi-space-starvation' ? 45 : 290)

/** Text as UTF-8 represents it. @param {string} text */
const wellFormed = text => text.replace(/\p{Cs}/gu, '\ufffd')

let it_
let dataFolder
let folder
/** @type {import('node:http').Server} */
let hooks
const posts = []
let otlp
/** @type {import('node:net').Socket[]} */
const connections = []
const ids = [...TEXTS, ALL].map(
  (_, i) => `${String(i).padStart(8, '0')}-0000-4000-8000-000000000000`
)

/**
 * Stores a capture of an app whose functions and files all have the hostile name.
 * @param {string} text
 * @param {string} id
 * @param {string} [thread]
 */
function keepCapture (text, id, thread = 'main') {
  const site = {
    function: text,
    file: text,
    line: 1,
    value: 2 ** 20,
    share: 1,
    inlinedIn: text,
    via: text,
    call: text,
    instead: text,
    longestSeconds: null,
    text: `${text} ${text}:1`
  }
  const profile = {
    head: {
      callFrame: { functionName: '(root)', url: '', lineNumber: -1, columnNumber: -1 },
      selfSize: 0,
      children: [
        {
          callFrame: { functionName: text, url: text, lineNumber: 1, columnNumber: 1 },
          selfSize: 1,
          children: []
        }
      ]
    }
  }
  const at = path.join(folder, 'captures', id)
  fs.mkdirSync(at, { recursive: true, mode: 0o700 })
  fs.writeFileSync(path.join(at, 'profile'), JSON.stringify(profile))
  fs.writeFileSync(
    path.join(at, 'capture.json'),
    JSON.stringify({
      id,
      kind: 'heap_profile',
      target: text,
      thread,
      pid: 1,
      host: text,
      node: text,
      startedAtUnixMs: 1,
      seconds: 1,
      diagnosis: null,
      state: 'done',
      error: null,
      errorCode: null,
      requestedUnixMs: Date.now(),
      finishedUnixMs: Date.now(),
      parts: [{ part: 'profile', bytes: Buffer.byteLength(JSON.stringify(profile)), sha256: '' }],
      suspects: { of: 'grown bytes', total: 2 ** 20, sites: [site] }
    })
  )
}

/** @param {object[]} messages */
async function tell (messages) {
  const connection = await it_.connect()
  connections.push(connection)
  for (const message of messages) {
    if (!connection.write(JSON.stringify(message.v ? message : JSON.parse(line(message))) + '\n')) {
      await once(connection, 'drain')
    }
  }
  return connection
}

const targetOf = pid => it_.exporter.targets.find(({ hello }) => hello.pid === pid)
const rejected = () =>
  [...it_.exporter.state.rejected.values()].reduce((sum, count) => sum + count, 0)
/** Hostile texts by pid, for targets with a fix. */
const ill = new Map()
const illIn = name =>
  [...ill]
    .filter(([, of]) => of.name === name)
    .map(([pid, { text }]) => ({ target: targetOf(pid), text }))

beforeAll(async () => {
  // On a busy machine the exporter would drop the frames that fixes need.
  jest.spyOn(Load.prototype, 'measure').mockReturnValue(false)
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-hostile-'))
  TEXTS.forEach((text, i) => keepCapture(text, ids[i]))
  keepCapture(ALL, ids[TEXTS.length], ALL)
  hooks = http
    .createServer(async (request, response) => {
      const chunks = []
      for await (const chunk of request) chunks.push(chunk)
      posts.push(Buffer.concat(chunks))
      response.end()
    })
    .listen(0, '127.0.0.1')
  await once(hooks, 'listening')
  otlp = await startOtlpReceiver()
  dataFolder = await DataFolder.open(folder)
  it_ = await startExporter({
    dataFolder,
    autoCaptures: false,
    webhook: `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (hooks.address()).port}/`,
    otlp: otlp.url
  })

  // The texts are sent over the socket, as by any process. Whether accepted or refused, every
  // output below must be safe.
  for (const [i, text] of TEXTS.entries()) {
    const before = rejected()
    await tell([hostileHello(text, { pid: 1000 + i }), frame()])
    await eventually(() => rejected() > before || targetOf(1000 + i)?.frame, Boolean, 30_000)
  }
  mockIsOpen = true
  for (const [i, text] of TEXTS.entries()) {
    await tell([hostileHello(text, { pid: 2000 + i, startedAtUnixMs: 2 }), frame()])
  }
  const apps = [
    ...TEXTS.map(text => ['20-semi-space-starvation', text]),
    ...Object.keys(recorded)
      .slice(1)
      .map(name => [name, ALL])
  ]
  for (const [i, [name, text]] of apps.entries()) {
    const frames = framesOf(name)
    const pid = 3000 + i
    ill.set(pid, { name, text })
    await tell([illHello(name, text, { pid, name: `${text.slice(0, 50)} ill ${i}` }), ...frames])
    await eventually(
      () => targetOf(pid)?.frame?.sequence,
      sequence => sequence === frames.at(-1).sequence,
      30_000
    )
  }
}, 120_000)

afterAll(async () => {
  for (const connection of connections) connection.destroy()
  await it_.stop()
  dataFolder.close()
  otlp.stop()
  hooks.closeAllConnections()
  hooks.close()
  fs.rmSync(folder, { recursive: true })
})

/** Runs a command of the CLI in this process and returns its output. @param {...string} args */
async function cli (...args) {
  const written = { stdout: '', stderr: '', error: '' }
  const spies = /** @type {const} */ (['stdout', 'stderr']).map(name =>
    jest.spyOn(process[name], 'write').mockImplementation(text => {
      written[name] += text
      return true
    })
  )
  try {
    await program.parseAsync(args, { from: 'user' })
  } catch (error) {
    written.error = /** @type {Error} */ (error).message
  } finally {
    for (const spy of spies) spy.mockRestore()
    process.exitCode = 0
  }
  return written
}

const get = async path => {
  const response = await it_.get(path)
  return { response, bytes: Buffer.from(await response.arrayBuffer()) }
}
const api = async path => {
  const { response, bytes } = await get(`/api/v1/${path}`)
  expect([path, response.status]).toEqual([path, 200])
  return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
}
/** Items of all pages of a list. @param {string} path */
async function listed (path) {
  const items = []
  /** @type {string | undefined} */
  let next = path
  while (next) {
    const response = await it_.get(`/api/v1/${next}`)
    items.push(...(await response.json()))
    next = /\/api\/v1\/([^>]*)>; rel="next"/.exec(response.headers.get('link') ?? '')?.[1]
  }
  return items
}

it('the apps of this test have fixes in every form', () => {
  for (const target of illIn('20-semi-space-starvation')) {
    expect(
      findCase(target.target).verdicts.find(({ state }) => state === 'confirmed')?.fix[0].change.env
        ?.NODE_OPTIONS
    ).toContain('--max-semi-space-size=')
  }
  const changes = [...ill.keys()].flatMap(pid =>
    findCase(targetOf(pid)).verdicts.flatMap(({ fix }) => fix.map(({ change }) => change))
  )
  expect(changes.some(({ env }) => env?.LD_PRELOAD)).toBe(true)
  expect(changes.some(({ memoryLimitBytes }) => memoryLimitBytes)).toBe(true)
  expect(changes.some(({ dockerfile }) => dockerfile?.startsWith('# instead of'))).toBe(true)
})

describe('memwatch fix', () => {
  const containerOf = text => {
    const document = yamlDocument(text)
    expect(Object.keys(document)).toEqual(['apiVersion', 'kind', 'metadata', 'spec'])
    expect([
      document.apiVersion,
      document.kind,
      Object.keys(document.metadata),
      Object.keys(document.spec),
      Object.keys(document.spec.template),
      Object.keys(document.spec.template.spec)
    ]).toEqual([
      'apps/v1',
      'Deployment',
      ['name', 'namespace'],
      ['template'],
      ['spec'],
      ['containers']
    ])
    expect(document.spec.template.spec.containers).toHaveLength(1)
    return { document, container: document.spec.template.spec.containers[0] }
  }

  it.each(TEXTS.map((text, i) => [JSON.stringify(text), i]))(
    'prints one document with the expected keys: %s',
    async (_, i) => {
      const { target, text } = illIn('20-semi-space-starvation')[i]
      const args = ['fix', target.name, '--format', 'kubernetes', '--url', it_.url]
      const printed = await cli(...args)
      // The workload may not be derivable from the name of the pod.
      const { stdout, stderr } = printed.error.startsWith('--workload')
        ? await cli(...args, '--workload', 'deployment/shop')
        : printed
      const { document, container } = containerOf(stdout)
      expect([...unprintableIn(stdout), ...unprintableIn(stderr)]).toEqual([])
      expect([document.metadata.namespace, container.name]).toEqual([
        wellFormed(text),
        wellFormed(text)
      ])
      expect(Object.keys(container)).toEqual(['name', 'env'])
      expect(container.env).toEqual([
        {
          name: 'NODE_OPTIONS',
          value: expect.stringMatching(/^--enable-source-maps --max-semi-space-size=\d+$/)
        }
      ])
      expect(
        stdout
          .split('\n')
          .filter(line => line.startsWith('#'))
          .join()
      ).toContain('memwatch leaves out')
    }
  )

  it('prints nothing but options of Node.js in the other forms', async () => {
    for (const { target } of illIn('20-semi-space-starvation')) {
      const [options, dockerfile] = [
        await cli('fix', target.name, '--format', 'node-options', '--url', it_.url),
        await cli('fix', target.name, '--format', 'dockerfile', '--url', it_.url)
      ]
      expect(splitNodeOptions(options.stdout.trimEnd())).toEqual([
        OPTION,
        expect.stringMatching(/^--max-semi-space-size=\d+$/)
      ])
      expect(options.stderr).toContain('memwatch leaves out')
      expect(dockerfileVariables(dockerfile.stdout)).toEqual({
        NODE_OPTIONS: options.stdout.trimEnd()
      })
    }
  })

  it('prints libraries and limits in the same way', async () => {
    const where = ['--workload', 'deployment/shop', '--url', it_.url]
    const [{ target: fragmented }] = illIn('24-allocator-fragmentation')
    const { container } = containerOf(
      (
        await cli(
          'fix',
          fragmented.name,
          '--diagnosis',
          'allocator-fragmentation',
          '--format',
          'kubernetes',
          '--fix',
          '1',
          ...where
        )
      ).stdout
    )
    const env = Object.fromEntries(container.env.map(({ name, value }) => [name, value]))
    expect(env).toEqual({
      LD_PRELOAD: 'libjemalloc.so.2',
      MALLOC_CONF: expect.stringMatching(/^[\w:,]+$/)
    })
    expect(
      dockerfileVariables(
        (
          await cli(
            'fix',
            fragmented.name,
            '--diagnosis',
            'allocator-fragmentation',
            '--fix',
            '1',
            '--format',
            'dockerfile',
            '--url',
            it_.url
          )
        ).stdout
      )
    ).toEqual(env)
    const [{ target: blind }] = illIn('20-container-limit-mismatch')
    for (const fix of ['1', '2', '3']) {
      const { stdout } = await cli(
        'fix',
        blind.name,
        '--diagnosis',
        'container-limit-mismatch',
        '--format',
        'kubernetes',
        '--fix',
        fix,
        ...where
      )
      if (stdout) {
        expect(['env', 'resources']).toContain(Object.keys(containerOf(stdout).container)[1])
      }
    }
  })
})

describe('a text pasted into a shell', () => {
  it('is parsed into the intended words, and executes nothing', async () => {
    const changes = (await listed('diagnoses')).flatMap(({ verdicts }) =>
      verdicts.flatMap(({ fix }) => fix.map(({ change }) => change))
    )
    const assignments = new Map(
      changes.flatMap(({ env }) =>
        env
          ? [
              [
                Object.entries(env)
                  .map(([name, value]) => `${name}=${value}`)
                  .join('\0'),
                env
              ]
            ]
          : []
      )
    )
    const labels = exposition((await get('/metrics')).bytes)
      .filter(({ name }) => name === 'memwatch_verdict_info')
      .map(({ labels }) => labels.fix)
    const posted = posts.map(post => JSON.parse(post.toString()).data.fix)
    const [fromLabels, fromPosts] = [labels, posted].map(texts =>
      shellReads(texts.filter(text => /^[A-Z_]+=/.test(text)))
    )
    expect([...fromLabels.files, ...fromPosts.files]).toEqual([])
    expect(Math.min(fromLabels.words.length, fromPosts.words.length)).toBeGreaterThanOrEqual(
      TEXTS.length
    )
    for (const words of fromLabels.words) {
      expect([...assignments.keys()]).toContain(words.join('\0'))
    }
    for (const words of fromPosts.words) {
      expect(words.join('\0')).toMatch(
        /^(NODE_OPTIONS=--enable-source-maps( --max-[a-z-]+=\d+)+|LD_PRELOAD=libjemalloc\.so\.2\0MALLOC_CONF=[\w:,]+|MALLOC_[A-Z_]+=\d+)$/
      )
    }
  })
})

describe('a terminal gets only plain lines of text', () => {
  const lines = text => text.split('\n').length

  it('from top: a row of each target', async () => {
    const { stdout, stderr, error } = await cli('top', '--once', '--url', it_.url)
    expect([unprintableIn(stdout), unprintableIn(stderr), error]).toEqual([[], [], ''])
    // Header, empty line, column heads, and the end of the last row.
    expect(lines(stdout)).toBe(it_.exporter.targets.length + 4)
  })

  it('from plan, trim and capture, even if they are refused', async () => {
    for (const { target } of illIn('20-semi-space-starvation')) {
      for (const args of [
        ['plan', target.name],
        ['plan', target.name, '--json'],
        ['trim', target.name, '--dry-run'],
        ['capture', target.name, 'heap_profile']
      ]) {
        const { stdout, stderr } = await cli(...args, '--url', it_.url)
        expect([args[0], ...unprintableIn(stdout + stderr)]).toEqual([args[0]])
        expect(stdout + stderr).not.toBe('')
        if (args.includes('--json')) JSON.parse(stdout)
      }
    }
  })

  it('from an error of the command itself', async () => {
    const { code, stderr } = await memwatch([
      'fix',
      'nobody',
      '--format',
      'kubernetes',
      '--url',
      it_.url
    ])
    expect([code, ...unprintableIn(stderr), lines(stderr)]).toEqual([2, 2])
    expect(stderr).toContain('unknown target: nobody main; known targets: ')
  })

  it('from diagnose and compare of a recording', async () => {
    const wire = message => ({ session: 1, line: { v: 1, ...message } })
    for (const [i, name] of Object.keys(recorded).entries()) {
      const file = path.join(folder, `${i}.ndjson`)
      const frames = framesOf(name)
      fs.writeFileSync(
        file,
        [
          { memwatch: 'recording', version: 1, command: TEXTS },
          wire(illHello(name, ALL)),
          ...frames.map(wire),
          { session: 1, closed: true },
          { end: { durationSeconds: 1, exit: { code: null, signal: ALL } } }
        ]
          .map(item => JSON.stringify(item))
          .join('\n') + '\n'
      )
      const report = await cli('diagnose', file)
      expect(report.stdout).toContain('Evidence')
      const json = await cli('diagnose', '--json', file)
      expect(JSON.parse(json.stdout).targets[0].target).toBe(wellFormed(ALL))
      const compared = await cli('compare', file, file)
      expect(compared.stdout).toContain('Peak RSS')
      for (const { stdout, stderr } of [report, json, compared]) {
        expect([...unprintableIn(stdout), ...unprintableIn(stderr)]).toEqual([])
      }
      expect(report.stdout).not.toMatch(/^(---|x)$/m)
    }
  })

  it('from run, for a real app with the hostile name', async () => {
    const name = '\u001b[2J\u001b]0;x\u0007\u202e\n---\n$(id)`|<img onerror>'
    const folderOfApp = path.join(folder, 'app')
    fs.mkdirSync(folderOfApp)
    fs.writeFileSync(path.join(folderOfApp, 'package.json'), JSON.stringify({ name }))
    fs.writeFileSync(
      path.join(folderOfApp, 'app.js'),
      'setTimeout(() => { process.exitCode = 1 }, 2500)'
    )
    const { stdout, stderr } = await memwatch([
      'run',
      '--',
      process.execPath,
      path.join(folderOfApp, 'app.js')
    ])
    expect([...unprintableIn(stdout), ...unprintableIn(stderr)]).toEqual([])
    expect(stdout).toContain('exit status 1')
  })
})

it('an assistant gets texts of processes as data, in a block that no text can close', async () => {
  const mcp = await connectMcp({ url: it_.url })
  const listed = []
  for (let skip = 0, count = 1; skip < count;) {
    const answer = await mcp.call('targets', { skip })
    listed.push(...answer.targets)
    skip += answer.targets.length
    count = answer.count
  }
  expect(listed.length).toBe(it_.exporter.targets.length)
  for (const { name: target, thread } of it_.exporter.targets) {
    for (const tool of ['verdicts', 'memory', 'audit']) {
      expect(await mcp.call(tool, { target, thread })).toMatchObject({ isError: false })
    }
    await mcp.call('series', { target, thread, tracks: ['rssBytes'] })
    await mcp.call('plan', { target })
  }
  const { captures } = await mcp.call('captures')
  expect(captures.length).toBe(ids.length)
  for (const { id } of captures) {
    const { suspects } = await mcp.call('suspects', { capture: id })
    expect(suspects.sites.length).toBe(1)
  }
  for (const text of [...TEXTS, ALL]) {
    expect(await mcp.call('verdicts', { target: `no such ${text}` })).toMatchObject({ isError: true })
    await mcp.call('docs', { query: text })
    await mcp.call(text, { [text]: text })
  }
  await mcp.stop()
}, 60_000)

describe('machine-readable output', () => {
  it.each(['text/plain', 'application/openmetrics-text'])(
    '/metrics as %s: every series once, every label unchanged',
    async accept => {
      const response = await it_.get('/metrics', { accept })
      const samples = exposition(Buffer.from(await response.arrayBuffer()))
      const series = samples.map(({ series }) => series)
      expect(series.filter((one, i) => series.indexOf(one) < i)).toEqual([])
      const names = samples
        .filter(({ name }) => name === 'memwatch_target_up')
        .map(({ labels }) => labels.target)
      expect(new Set(names)).toEqual(
        new Set(it_.exporter.targets.map(({ name }) => wellFormed(name)))
      )
      const pods = new Set(
        samples
          .filter(({ name }) => name === 'memwatch_target_pod_info')
          .map(({ labels }) => labels.k8s_namespace_name)
      )
      for (const text of TEXTS) expect(pods).toContain(wellFormed(text))
    }
  )

  it('every route of the API: valid JSON in UTF-8', async () => {
    const { paths } = await api('openapi.json')
    for (const [route, { get: described }] of Object.entries(paths)) {
      if (
        !described ||
        route.includes('{') ||
        !route.startsWith('/api/v1/') ||
        /\/(live|recording|plan|right-size)$/.test(route)
      ) { continue }
      await api(route.slice('/api/v1/'.length))
    }
    const manifests = (await listed('diagnoses')).flatMap(({ verdicts }) =>
      verdicts.flatMap(({ fix }) =>
        fix.flatMap(({ change: { kubernetes, dockerfile } }) => [
          kubernetes && yamlDocument(kubernetes),
          dockerfile && dockerfileVariables(dockerfile)
        ])
      )
    )
    for (const fields of manifests.filter(Boolean)) {
      for (const key of Object.keys(fields)) {
        expect(key).toMatch(/^(env|resources|[A-Z_]+)$/)
      }
    }
    for (const { name } of it_.exporter.targets) {
      const of = encodeURIComponent(wellFormed(name))
      await api(`targets/${of}/series?track=rssBytes`)
      expect((await listed(`targets?target=${of}`)).map(({ target }) => target)).toEqual([
        wellFormed(name)
      ])
    }
  })

  it('the pages contain no text of a target', async () => {
    for (const accept of ['text/html', 'text/plain']) {
      const response = await it_.get('/', { accept })
      expect([response.status, (await response.text()).includes('onerror')]).toEqual([200, false])
    }
    const page = path.join(__dirname, '../../exporter/page')
    for (const file of fs.readdirSync(page).filter(name => name.endsWith('.mjs'))) {
      expect(fs.readFileSync(path.join(page, file), 'utf8')).not.toMatch(
        /innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment/
      )
    }
  })

  it('streams: one event or record a line', async () => {
    const over = new AbortController()
    const live = await fetch(`${it_.url}/api/v1/live`, { signal: over.signal })
    let text = ''
    for await (const chunk of defined(live.body)) {
      text += Buffer.from(chunk)
      if (/^data: .*"targets"|^event: targets[^]*\n\n/m.test(text)) break
    }
    over.abort()
    for (const event of text.split('\n').filter(Boolean)) {
      expect(event).toMatch(/^(event: \w+|data: |retry: |: ?)/)
      if (event.startsWith('data: ')) JSON.parse(event.slice('data: '.length))
    }
    const recording = await it_.get('/api/v1/recording?seconds=1')
    for (const record of (await recording.text()).split('\n').filter(Boolean)) JSON.parse(record)
  })

  it.each(TEXTS.map((text, i) => [JSON.stringify(text), i]))(
    'captures with hostile names: %s',
    async (_, i) => {
      const { response, bytes } = await get(`/api/v1/captures/${ids[i]}/suspects.md`)
      const text = bytes.toString()
      expect([response.status, ...unprintableIn(text)]).toEqual([200])
      expect(markdownTable(text).map(cells => cells.length)).toEqual([5, 5, 5])
      expect(text.split('\n')).toHaveLength(6)
      for (const query of ['', '?format=pprof']) {
        const part = await get(`/api/v1/captures/${ids[i]}/profile${query}`)
        expect(part.response.headers.get('content-disposition')).toMatch(
          /^attachment; filename="[\w.-]+"$/
        )
        if (query) {
          expect(Profile.decode(gunzipSync(part.bytes)).stringTable.strings).toContain(
            wellFormed(TEXTS[i])
          )
        } else JSON.parse(part.bytes.toString())
      }
    }
  )

  it('every post of the webhook: JSON for any parser', async () => {
    await eventually(
      () => posts.length,
      count => count >= TEXTS.length
    )
    for (const post of posts) {
      const text = new TextDecoder('utf-8', { fatal: true }).decode(post)
      const { data } = JSON.parse(text)
      expect([
        ...unprintableIn(text),
        ...[data.target, data.host, data.node].filter(text => text !== wellFormed(text))
      ]).toEqual([])
    }
  })
})

it('deaths: last-death, events, and all data sent by OTLP', async () => {
  for (const [i, connection] of connections.entries()) {
    if (!connection.destroyed) {
      connection.write(line({ type: 'bye', sequence: 10_000 + i, atUnixMs: 1, exitCode: 1 }) + '\n')
    }
  }
  await eventually(
    () => it_.exporter.targets.length,
    count => count === 0
  )
  const deaths = await listed('deaths')
  expect(deaths.length).toBeGreaterThan(2 * TEXTS.length)
  for (const [, { text }] of ill) {
    const { target } = deaths.find(({ target }) =>
      target.startsWith(`${wellFormed(text.slice(0, 50))} ill`)
    )
    for (const args of [
      ['last-death', target],
      ['last-death', target, '--json']
    ]) {
      const { stdout, stderr, error } = await cli(...args, '--url', it_.url)
      expect([error, ...unprintableIn(stdout + stderr)]).toEqual([''])
      expect(stdout).toContain('exited with code 1')
      if (args.includes('--json')) expect(JSON.parse(stdout).death.target).toBe(target)
    }
  }
  exposition((await get('/metrics')).bytes)

  await eventually(
    () => otlp.events().filter(({ eventName }) => eventName === 'memwatch.death').length,
    count => count >= deaths.length
  )
  const texts = (/** @type {any} */ value) =>
    typeof value === 'string'
      ? [value]
      : value && typeof value === 'object' && !Buffer.isBuffer(value)
        ? Object.entries(value).flatMap(([key, item]) => [key, ...texts(item)])
        : []
  const sent = otlp.received.flatMap(({ resources }) => resources.flatMap(texts))
  expect(sent.filter(text => text !== wellFormed(text))).toEqual([])
  for (const text of TEXTS) expect(sent).toContain(wellFormed(text))
}, 60_000)

it('the name in a stored record cannot add an HTTP header or name another file', async () => {
  for (const query of ['', '?format=pprof']) {
    const { response } = await get(`/api/v1/captures/${ids[TEXTS.length]}/profile${query}`)
    expect(response.headers.get('content-disposition')).toMatch(/^attachment; filename="[\w.-]+"$/)
  }
})
