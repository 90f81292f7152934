'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { command } = require('../../cli/exporter')
const { options, readConfig, ConfigError } = require('../../exporter/config')
const { readConfigFile } = require('../../exporter/config-file')
const { environment, spawnBounded } = require('../support/agent-collector')
const { startExporter } = require('../support/exporter')
const { MEMWATCH } = require('../support/memwatch')

describe('readConfig', () => {
  it('has safe defaults: loopback, a socket of this user, prom-client names', () => {
    expect(readConfig({}, {})).toMatchObject({
      listen: { host: '127.0.0.1', port: 16369 },
      compat: true,
      socket: { path: expect.stringContaining('memwatch-') }
    })
  })
  it('reads every flag of the command line under the key of its option', () => {
    const flags = Object.values(options).flatMap(({ flag }) => [flag.split(' ')[0], 'text'])
    command.parseOptions(flags)
    expect(command.opts()).toEqual(
      Object.fromEntries(Object.values(options).map(({ key }) => [key, 'text'])))
  })
  it('prefers flags to the environment', () => {
    expect(
      readConfig({ listen: '0.0.0.0:1' }, { MEMWATCH_LISTEN: '0.0.0.0:2', MEMWATCH_COMPAT: 'off' })
    ).toMatchObject({ listen: { host: '0.0.0.0', port: 1 }, compat: false })
  })
  it.each([
    ['--listen', { listen: 'nowhere' }, {}],
    ['--listen', { listen: '127.0.0.1:65536' }, {}],
    ['--socket', { socket: 'tcp://x' }, {}],
    ['--max-targets', { maxTargets: '0' }, {}],
    ['--max-targets', { maxTargets: '1e3' }, {}],
    ['MEMWATCH_COMPAT', {}, { MEMWATCH_COMPAT: 'yes' }],
    ['MEMWATCH_LOG_LEVEL', {}, { MEMWATCH_LOG_LEVEL: 'loud' }]
  ])('names %s when its value is wrong', (name, flags, env) => {
    expect(() => readConfig(flags, env)).toThrow(ConfigError)
    expect(() => readConfig(flags, env)).toThrow(new RegExp(`^${name}: expected`))
  })
  it.each([['1', 1], ['100000', 100_000]])('accepts --max-targets %s', (text, number) => {
    expect(readConfig({ maxTargets: text }, {}).maxTargets).toBe(number)
  })
  it('names the nearest known variable when one is misspelt', () => {
    expect(() => readConfig({}, { MEMWATCH_LISTN: 'x' })).toThrow(
      'MEMWATCH_LISTN: no such option; did you mean MEMWATCH_LISTEN?'
    )
    expect(() => readConfig({}, { MEMWATCH_NAME: 'an option of the agent' })).not.toThrow()
  })
  it('ignores variables that the kubelet sets for a Service called memwatch', () => {
    const links = {
      MEMWATCH_SERVICE_HOST: '10.96.0.7',
      MEMWATCH_SERVICE_PORT: '16369',
      MEMWATCH_SERVICE_PORT_MEMWATCH: '16369',
      MEMWATCH_PORT: 'tcp://10.96.0.7:16369',
      MEMWATCH_PORT_16369_TCP: 'tcp://10.96.0.7:16369',
      MEMWATCH_PORT_16369_TCP_PROTO: 'tcp',
      MEMWATCH_PORT_16369_TCP_PORT: '16369',
      MEMWATCH_PORT_16369_TCP_ADDR: '10.96.0.7',
      MEMWATCH_NODE_SERVICE_HOST: '10.96.0.8',
      MEMWATCH_NODE_PORT: 'tcp://10.96.0.8:16369'
    }
    expect(() => readConfig({}, links)).not.toThrow()
    expect(() => readConfig({}, { MEMWATCH_PORT: '16369' })).toThrow('MEMWATCH_PORT: no such option')
  })
  it('accepts a folder for --socket-dir, and names an invalid one', () => {
    expect(readConfig({ socketDir: __dirname }, {}).socketDir).toBe(__dirname)
    expect(() => readConfig({ socketDir: __filename }, {})).toThrow('--socket-dir: ')
    expect(() => readConfig({ socketDir: '/nowhere' }, {})).toThrow('--socket-dir: ENOENT')
  })
})

describe('the config file', () => {
  let folder
  beforeEach(() => { folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-config-')) })
  afterEach(() => fs.rmSync(folder, { recursive: true }))
  /**
   * @param {unknown} content
   * @param {string} [name]
   */
  const write = (content, name = 'memwatch.config.json') => {
    const file = path.join(folder, name)
    fs.writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
    return file
  }
  const read = (named, env = {}) => readConfigFile(named, { env, cwd: folder })
  /** Runs the CLI in that folder to its end. @param {string[]} args */
  const memwatch = (args, env = {}) =>
    spawnBounded(
      process.execPath, [MEMWATCH, ...args], { cwd: folder, env: environment(env) }
    ).ended

  it('overrides defaults, and flags and variables override it', () => {
    write({ listen: '0.0.0.0:1', compat: 'off', maxTargets: 7, logLevel: 'warn' })
    const env = { MEMWATCH_LISTEN: '0.0.0.0:2', MEMWATCH_COMPAT: 'prom-client' }
    expect(readConfig({ listen: '0.0.0.0:3' }, env, read())).toMatchObject({
      listen: { port: 3 }, compat: true, maxTargets: 7, logLevel: 'warn', capturesKeep: 86_400
    })
    expect(readConfig({}, { MEMWATCH_LISTEN: '' }, read()).listen).toMatchObject({ port: 1 })
  })
  it('is named by --config, then by MEMWATCH_CONFIG, otherwise is in the working folder', () => {
    expect(read()).toBe(undefined)
    write({ maxTargets: 1 })
    write({ maxTargets: 2 }, 'two.json')
    write({ maxTargets: 3 }, 'three.json')
    expect(read()?.values).toEqual({ maxTargets: '1' })
    expect(read(undefined, { MEMWATCH_CONFIG: 'two.json' })?.values).toEqual({ maxTargets: '2' })
    expect(read('three.json', { MEMWATCH_CONFIG: 'two.json' })?.values).toEqual({ maxTargets: '3' })
    expect(() => read('four.json')).toThrow(/^four.json: ENOENT/)
    expect(() => read(undefined, { MEMWATCH_CONFIG: 'five.json' })).toThrow(/^five.json: ENOENT/)
  })
  it('accepts every option by the name of its flag, and switches as true and false', () => {
    const keys = Object.values(options).map(({ key }) => key)
    expect(keys).toEqual(expect.arrayContaining(['listen', 'dataDir', 'tokenFile', 'onFailure']))
    const values = Object.fromEntries(keys.map(key => [key, 'x']))
    write({ ...values, url: 'http://x' })
    expect(Object.keys(read()?.values ?? {})).toEqual([...keys, 'url'])
    write({ autoCaptures: false, trustLoopback: true })
    expect(readConfig({}, {}, read())).toMatchObject({ autoCaptures: false, trustLoopback: true })
  })
  it.each([
    [{ listn: 'x' }, 'listn: no such key; did you mean listen?'],
    [{ nonsense: 1 }, 'nonsense: no such key; known are listen, socket'],
    [{ config: 'x' }, 'config: no such key'],
    ['{"__proto__": 1}', '__proto__: no such key'],
    [{ listen: 9888 }, 'listen: expected a string, got 9888'],
    [{ listen: null }, 'listen: expected a string, got null'],
    [{ maxTargets: true }, 'maxTargets: expected a number, got true'],
    [{ autoCaptures: 1 }, 'autoCaptures: expected true, false, "on" or "off", got 1'],
    [[], 'expected an object, such as {"listen"'],
    ['{"listen": ', 'Unexpected end of JSON input'],
    [' '.repeat(65_537), 'expected a file of at most 65536 bytes']
  ])('refuses %j, and names file and key', (content, text) => {
    write(content)
    expect(read).toThrow(ConfigError)
    expect(read).toThrow(`memwatch.config.json: ${text}`)
  })
  it('refuses a value that its option refuses, and names file and key', () => {
    write({ listen: 'nowhere' })
    expect(() => readConfig({}, {}, read())).toThrow(
      'memwatch.config.json: listen: expected HOST:PORT'
    )
  })
  it('is not read in a working folder that others may write to, unless --config names it', () => {
    const file = write({ maxTargets: 1 })
    fs.chmodSync(file, 0o666)
    expect(() => read()).toThrow('another user owns this file or may write to it')
    expect(read('memwatch.config.json')?.values).toEqual({ maxTargets: '1' })
    if (process.getuid?.() !== 0) return
    fs.chmodSync(file, 0o644)
    fs.chownSync(file, 65_534, 65_534)
    const getuid = jest.spyOn(process, 'getuid').mockReturnValue(1000)
    expect(() => read()).toThrow('another user owns this file')
    getuid.mockRestore()
  })

  it('is read by the exporter, which ends with 2 for an error in it', async () => {
    write({ listen: 'nowhere' })
    expect(await memwatch(['exporter'])).toMatchObject({
      code: 2, stderr: expect.stringMatching(/^memwatch: memwatch.config.json: listen: expected HOST:PORT/)
    })
    write('{')
    expect(await memwatch(['exporter'])).toMatchObject({
      code: 2, stderr: expect.stringMatching(/^memwatch: memwatch.config.json: /)
    })
  })
  it('--token-file works like its variable', async () => {
    expect(await memwatch(['exporter', '--token-file', '/no/such'])).toMatchObject({
      code: 2, stderr: expect.stringMatching(/^memwatch: --token-file: ENOENT/)
    })
  })
  it('provides commands with the URL of the exporter and the token', async () => {
    const exporter = await startExporter({ token: 'secret', trustLoopback: false })
    try {
      fs.writeFileSync(path.join(folder, 'token'), 'secret')
      write({ url: exporter.url, tokenFile: 'token' })
      expect(await memwatch(['top', '--once'])).toMatchObject({
        code: 0, stdout: expect.stringContaining('No target')
      })
      const wrong = { MEMWATCH_URL: 'http://127.0.0.1:1' }
      expect(await memwatch(['top', '--once'], wrong)).toMatchObject({
        code: 2, stderr: expect.stringContaining('no exporter answers at http://127.0.0.1:1')
      })
      expect((await memwatch(['top', '--once', '--url', exporter.url], wrong)).code).toBe(0)
    } finally {
      await exporter.stop()
    }
  })
})
