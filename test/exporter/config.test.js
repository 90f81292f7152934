'use strict'

const { command } = require('../../cli/exporter')
const { options, readConfig, ConfigError } = require('../../exporter/config')

describe('readConfig', () => {
  it('has sane defaults: loopback, a socket of this user, prom-client names', () => {
    expect(readConfig({}, {})).toMatchObject({
      listen: { host: '127.0.0.1', port: 16369 },
      compat: true,
      socket: { path: expect.stringContaining('memwatch-') }
    })
  })
  it('reads every flag of the command line under the name of its option', () => {
    const flags = Object.values(options).flatMap(({ flag }) => [flag.split(' ')[0], 'text'])
    command.parseOptions(flags)
    expect(command.opts()).toEqual(
      Object.fromEntries(Object.keys(options).map(name => [name, 'text'])))
  })
  it('takes flags before the environment', () => {
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
  it('leaves alone what the kubelet sets for a Service called memwatch, and nothing that only looks like it', () => {
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
  it('takes a folder for --socket-dir, and says what is none', () => {
    expect(readConfig({ socketDir: __dirname }, {}).socketDir).toBe(__dirname)
    expect(() => readConfig({ socketDir: __filename }, {})).toThrow('--socket-dir: ')
    expect(() => readConfig({ socketDir: '/nowhere' }, {})).toThrow('--socket-dir: ENOENT')
  })
})
