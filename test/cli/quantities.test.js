'use strict'

const { options: agentOptions, readConfig: readAgentConfig } = require('@memwatch/agent/protocol/config')
const { readConfig, options } = require('../../exporter/config')
const { program } = require('../../cli/memwatch')
const { memwatch } = require('../support/memwatch')

const TIME = 'expected a time such as 90, 90s, 5m, 24h or 7d, got "5x"'
const SIZE = 'expected an amount of memory such as 512Mi, 1Gi, 512M or 536870912, got "5x"'
/** Valid texts, by the placeholder of an option. @type {Record<string, string>} */
const PLACEHOLDERS = {
  '<TIME>': TIME, '<SIZE>': SIZE, '<LIMIT>': SIZE, '<LIMITS>': SIZE, '<MEMORY>': SIZE
}
/** Further arguments that a command needs. @type {Record<string, string[]>} */
const ARGUMENTS = {
  run: ['--', 'true'],
  try: ['--', 'true'],
  simulate: ['healthy-idle'],
  diagnose: ['--prometheus', 'http://127.0.0.1:1'],
  capture: ['shop', 'report'],
  retainers: [__filename],
  plan: ['--node', '22'],
  top: ['--once'],
  triage: ['0'],
  fleet: ['--prometheus', 'http://127.0.0.1:1'],
  gate: ['--baseline', __filename, '--', 'true'],
  'right-size': ['--prometheus', 'http://127.0.0.1:1', '--selector', '{job="shop"}']
}

const FLAGS = program.commands.flatMap(command => command.options.flatMap(({ long, flags }) => {
  const expected = PLACEHOLDERS[(/<[A-Z]+>/.exec(flags) ?? [''])[0]]
  return expected && command.name() !== 'exporter'
    ? [{ command: command.name(), flag: `${long}`, expected }]
    : []
}))

describe('times and sizes have one grammar', () => {
  it.each(FLAGS)('memwatch $command $flag', async ({ command, flag, expected }) => {
    const { code, stderr } = await memwatch([command, flag, '5x', ...ARGUMENTS[command]])
    expect({ code, stderr }).toEqual({
      code: 2, stderr: expect.stringContaining(`${flag}: ${expected}`)
    })
  })
  it('covers every command with such an option', () => {
    expect([...new Set(FLAGS.map(({ command }) => command))].sort())
      .toEqual(Object.keys(ARGUMENTS).sort())
  })

  it.each(Object.values(options).flatMap(({ flag, env }) => {
    const expected = PLACEHOLDERS[flag.split(' ')[1]]
    return expected ? [[env, expected]] : []
  }))('exporter: %s', (env, expected) => {
    expect(() => readConfig({}, { [env]: '5x' })).toThrow(`${env}: ${expected}`)
    const texts = expected === TIME
      ? ['90', '90s', '5m', '24h', '7d']
      : ['512Mi', '2Gi', '512MiB', '536870912']
    for (const text of texts) {
      expect(() => readConfig({}, { [env]: text })).not.toThrow()
    }
  })

  it('agent: its variables name their unit and accept numbers only', () => {
    const { intervalSeconds, memoryLimitBytes } = agentOptions
    expect(intervalSeconds.read('5')).toBe(5)
    expect(memoryLimitBytes.read('536870912')).toBe(2 ** 29)
    expect(() => readAgentConfig({ MEMWATCH_INTERVAL_SECONDS: '5s' }))
      .toThrow('MEMWATCH_INTERVAL_SECONDS: expected a number from 0.1 to 60, got "5s"')
    expect(() => readAgentConfig({ MEMWATCH_MEMORY_LIMIT_BYTES: '512Mi' }))
      .toThrow('MEMWATCH_MEMORY_LIMIT_BYTES: expected a whole number of bytes, got "512Mi"')
  })
})
