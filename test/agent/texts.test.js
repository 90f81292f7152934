'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { readConfig } = require('../../agent/protocol/config')
const { plainFlags } = require('../../agent/protocol/node-options')
const { scriptPath } = require('../../agent/identity')
const { HOST_NAME, KEY, POD_NAMES, isPlainText, plainText } = require('../../agent/protocol/text-rules')
const {
  NODES, environment, spawnBounded, spawnWatched, startCollector, versionOf
} = require('../support/agent-collector')

const AGENT = path.join(__dirname, '../../agent')
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-texts-'))
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }))
const QUICK = { MEMWATCH_INTERVAL_SECONDS: '0.1' }

describe('a plain text', () => {
  /** First and last character of each unsafe range. */
  const UNSAFE = [
    0x00, 0x1f, 0x7f, 0x9f, 0x61c, 0x200e, 0x200f, 0x2028, 0x202e, 0x2066, 0x2069, 0xd800, 0xdfff
  ]
  const SAFE = [
    0x20, 0x7e, 0xa0, 0x61b, 0x61d, 0x200d, 0x2010, 0x2027, 0x202f, 0x2065, 0x206a, 0xd7ff, 0xe000,
    0xfffd, 0x1f600, 0x10ffff
  ]
  const named = (/** @type {number[]} */ codes) =>
    codes.map(code => [code.toString(16), String.fromCodePoint(code)])
  it.each(named(UNSAFE))('contains no U+%s', (_, character) => {
    expect(isPlainText(`a${character}b`)).toBe(false)
    expect(plainText(`a${character}b${character}`)).toBe('a\ufffdb\ufffd')
  })
  it.each(named(SAFE))('may contain U+%s', (_, character) => {
    expect(isPlainText(`a${character}b`)).toBe(true)
    expect(plainText(`a${character}b`)).toBe(`a${character}b`)
  })
  it('is cut before it is made plain, so a lone surrogate at its new end is replaced', () => {
    expect(plainText('ab\u{1f600}', 3)).toBe('ab\ufffd')
  })
})

describe('names', () => {
  it.each(/** @type {[string, RegExp, string[], string[]][]} */ ([
    ['of a container', POD_NAMES.container, ['a', '0', 'a-b', 'x'.repeat(63)],
      ['', 'A', 'a_b', 'a.b', '-a', 'a-', 'a\n', 'x'.repeat(64)]],
    ['of a namespace', POD_NAMES.namespace, ['kube-system'], ['a\n---\n', 'a.b']],
    ['of a pod', POD_NAMES.name, ['shop-5d4c.0', 'x'.repeat(253)],
      ['', 'a..b', '.a', 'a.', 'a-.b', 'A', 'a b', 'a\n', 'x'.repeat(254)]],
    ['of a pod for good', POD_NAMES.uid, ['0d4b1c3e-7f6a-4e8b-9c2d-1a2b3c4d5e6f', 'u-1'],
      ['', '{}', 'a/b', 'a\n']],
    ['of a machine', HOST_NAME, ['a', 'My_Laptop.local', 'x'.repeat(253)],
      ['', '-a', 'a b', 'a\n', 'a/b', 'x'.repeat(254)]],
    ['in maps', KEY, ['TCPSocketWrap', 'node_api/a.node', 'x'.repeat(64)],
      ['', '__proto__', 'a b', 'a\n', 'x'.repeat(65)]]
  ]))('%s', (_, pattern, accepted, refused) => {
    expect(accepted.filter(name => !pattern.test(name))).toEqual([])
    expect(refused.filter(name => pattern.test(name))).toEqual([])
  })
  it('of pods that Kubernetes would refuse turn the agent off', () => {
    expect(readConfig({ MEMWATCH_CONTAINER: 'app' }).container).toBe('app')
    for (const name of ['POD_UID', 'POD_NAME', 'POD_NAMESPACE', 'CONTAINER']) {
      expect(() => readConfig({ [`MEMWATCH_${name}`]: 'a\n---\nb' })).toThrow(name)
      expect(() => readConfig({ [`MEMWATCH_${name}`]: 'App' })).toThrow(name)
    }
  })
})

describe('of flags', () => {
  const CODE = 'console.log("EVALSECRET")'
  const DATA = `data:text/javascript,${CODE}`
  it.each(/** @type {[string[], string[]][]} */ ([
    [['-e', CODE], ['-e', '<hidden>']],
    [['-p', CODE], ['-p', '<hidden>']],
    [['-pe', CODE], ['-pe', '<hidden>']],
    [['--eval', CODE], ['--eval', '<hidden>']],
    [[`--eval=${CODE}`], ['--eval=<hidden>']],
    [['--print', CODE], ['--print', '<hidden>']],
    [[`--print=${CODE}`], ['--print=<hidden>']],
    [['-p', '-e', CODE], ['-p', '-e', '<hidden>']],
    [['--input-type=module', '--eval', CODE], ['--input-type=module', '--eval', '<hidden>']],
    [['-r', DATA], ['-r', '<hidden>']],
    [['--require', DATA], ['--require', '<hidden>']],
    [[`--require=${DATA}`], ['--require=<hidden>']],
    [['--import', DATA], ['--import', '<hidden>']],
    [[`--import=${DATA}`], ['--import=<hidden>']],
    [['--import', ` DA\nTA:${CODE}`], ['--import', '<hidden>']],
    [[`--loader=${DATA}`, '--loader', DATA], ['--loader=<hidden>', '--loader', '<hidden>']],
    [[`--experimental-loader=${DATA}`], ['--experimental-loader=<hidden>']],
    [[`--experimental_loader=${DATA}`], ['--experimental_loader=<hidden>']],
    [['--title', 'TITLESECRET'], ['--title', '<hidden>']],
    [['--title=TITLESECRET=x'], ['--title=<hidden>']],
    [['--import', './database.mjs'], ['--import', './database.mjs']],
    [['--max-old-space-size=100', '--expose_gc'], ['--max-old-space-size=100', '--expose_gc']],
    [['--redirect-warnings=\u001b[2J\u202e'], ['--redirect-warnings=\ufffd[2J\ufffd']]
  ]))('%j remains %j', (flags, remaining) => {
    expect(plainFlags(flags)).toEqual(remaining)
  })
  it('are kept up to the limits of the wire contract', () => {
    expect(plainFlags(Array(1001).fill('-r'))).toHaveLength(1000)
    expect(plainFlags([`--x=${'y'.repeat(5000)}`])[0]).toHaveLength(4096)
    expect(plainFlags(Array(5).fill('x'.repeat(4096)))).toHaveLength(4)
  })
  it.each(/** @type {[string[], string[], string | undefined][]} */ ([
    [['node', '/app/server.js', 'ARGVSECRET'], ['-r', 'x'], '/app/server.js'],
    [['node'], [], undefined],
    [['node', '-', 'ARGVSECRET'], [], undefined],
    [['node', 'ARGVSECRET'], [], undefined],
    [['node', '/ARGVSECRET'], ['-e', '1'], undefined],
    [['node', '/ARGVSECRET'], ['--print=1'], undefined]
  ]))('and with arguments %j %j the script is %s', (argv, execArgv, script) => {
    expect(scriptPath({ argv, execArgv })).toBe(script)
  })
})

const SECRETS = /\w*SECRET/g
/** Arguments, environment and code with a secret in each. */
const DATA_MODULE = 'data:text/javascript,globalThis.kept="EVALSECRET"'
const FLAGS = ['--title=TITLESECRET', '--import', DATA_MODULE]
const HIDDEN_FLAGS = ['--title=<hidden>', '--import', '<hidden>']
const env = { A: 'ENVSECRET', ...QUICK }

describe.each(NODES.map(node => [versionOf(node), node]))('on Node %s', (_, node) => {
  /** @type {import('../support/agent-collector').Collector} */
  let collector
  beforeEach(async () => { collector = await startCollector() })
  afterEach(() => collector.stop())

  it('a hello contains plain texts only', async () => {
    const app = path.join(folder, 'app')
    fs.mkdirSync(app, { recursive: true })
    const name = `shop\u001b[2J\u202e${'x'.repeat(118)}\u{1f600}`
    fs.writeFileSync(path.join(app, 'package.json'), JSON.stringify({ name }))
    fs.writeFileSync(path.join(app, 'app.js'), 'setTimeout(() => {}, 300)')
    const hostile = '/a\u001b]0;x\u0007\u2028\u0085'
    await spawnWatched({
      node,
      before: [`--redirect-warnings=${hostile}`],
      args: [path.join(app, 'app.js')],
      socket: collector.address,
      env: { ...env, MALLOC_CONF: hostile, NODE_OPTIONS: `--diagnostic-dir="${hostile}"` }
    }).ended
    const [{ hello }] = collector.connections
    expect(hello.name).toBe(`shop\ufffd[2J\ufffd${'x'.repeat(118)}\ufffd`)
    const plain = '/a\ufffd]0;x\ufffd\ufffd\ufffd'
    expect(hello.mallocEnv.MALLOC_CONF).toBe(plain)
    expect(hello.execArgv[0]).toBe(`--redirect-warnings=${plain}`)
    expect(hello.nodeOptions[0]).toBe(`--diagnostic-dir=${plain}`)
    /**
     * @param {any} value
     * @returns {string[]}
     */
    const texts = value => {
      if (typeof value !== 'object') return [String(value)]
      return Object.entries(value).flatMap(([key, item]) => [key, ...texts(item)])
    }
    expect(texts(hello).filter(text => !isPlainText(text))).toEqual([])
  })

  it('a hello contains no code, argument or title of any thread', async () => {
    const code = `
      'EVALSECRET'
      const { Worker } = require('worker_threads')
      const argv = ['ARGVSECRET']
      new Worker('setTimeout(() => {}, 400) // EVALSECRET', { eval: true, argv })
      new Worker(new URL('data:text/javascript,setTimeout(() => {}, 400) // EVALSECRET'), { argv })
      setTimeout(() => {}, 600)`
    const end = await spawnWatched({
      node,
      before: FLAGS,
      args: ['-e', code, 'ARGVSECRET', '/ARGVSECRET.js'],
      socket: collector.address,
      cwd: '/',
      env: {
        ...env,
        NODE_OPTIONS: `--title TITLESECRET --import=${DATA_MODULE.replaceAll('"', "'")}`
      }
    }).ended
    expect(end).toMatchObject({ code: 0, stderr: '' })
    expect(collector.connections).toHaveLength(3)
    const hellos = collector.connections.map(({ hello }) => hello)
    expect(JSON.stringify(hellos).match(SECRETS)).toBe(null)
    expect(hellos.find(({ threadId }) => threadId === 0)).toMatchObject({
      name: 'node',
      execArgv: [...HIDDEN_FLAGS, '-r', expect.any(String), '-e', '<hidden>'],
      nodeOptions: ['--title', '<hidden>', '--import=<hidden>']
    })
  })

  it('a report contains no environment, argument, title or code of any thread', async () => {
    const script = path.join(folder, 'reports.js')
    fs.writeFileSync(script, `
      const { Worker } = require('worker_threads')
      const { report } = require(${JSON.stringify(path.join(AGENT, 'capture/report'))})
      const code = new URL('data:text/javascript,setInterval(() => {}, 5) // EVALSECRET')
      const worker = new Worker(code, { argv: ['ARGVSECRET'] })
      worker.once('online', async () => {
        let text = ''
        for await (const { chunks } of report({}, {})) text += chunks.join('')
        console.log(text)
        process.exit()
      })`)
    /** @param {string[]} args */
    const reportOf = async args => {
      const options = { env: environment(env) }
      const { stdout, stderr } = await spawnBounded(node, [...FLAGS, ...args], options).ended
      expect(stderr).toBe('')
      expect(stdout.match(SECRETS)).toBe(null)
      return JSON.parse(stdout)
    }
    const [fromFile, fromCode] = await Promise.all([
      reportOf([script, 'ARGVSECRET', '--token=ARGVSECRET']),
      reportOf(['-e', `'EVALSECRET'; require(${JSON.stringify(script)})`, 'ARGVSECRET'])
    ])
    const known = [fs.realpathSync(node), ...HIDDEN_FLAGS]
    expect(fromFile.header.commandLine).toEqual([...known, script])
    expect(fromCode.header.commandLine).toEqual([...known, '-e', '<hidden>'])
    expect(fromFile.sharedObjects.length).toBeGreaterThan(0)
    expect(fromFile.workers).toHaveLength(1)
    expect(fromFile).not.toHaveProperty('environmentVariables')
  })
})
