'use strict'

const { spawnSync } = require('node:child_process')
const { environment } = require('../support/agent-collector')
const { memwatch, MEMWATCH } = require('../support/memwatch')
const { program } = require('../../cli/memwatch')

describe('an invalid command line ends with status 2 and the reason:', () => {
  it.each(program.commands.map(command => command.name()))(
    'an unknown option of %s',
    async name => {
      expect(await memwatch([name, '--nonsense'])).toMatchObject({
        code: 2,
        stdout: '',
        stderr: expect.stringMatching(/^memwatch: (unknown|required) option /)
      })
    }
  )
  it.each([
    ['an unknown option before the command', ['--nonsense'], 'unknown option'],
    ['an unknown command', ['nonsense'], "unknown command 'nonsense'"],
    ['no command', [], 'Usage: memwatch'],
    ['an option without its value', ['trim', 'shop', '--url'], 'argument missing'],
    ['a missing argument', ['capture'], "missing required argument 'target'"],
    ['a missing option', ['fix', 'shop'],
      'required option --format is missing: expected kubernetes, dockerfile or node-options'],
    ['an unknown kind', ['capture', 'shop', 'heapprofile'], 'kind: expected cpu_profile,'],
    ['an invalid value', ['run', '--for', 'ever', '--', 'node'], '--for: expected']
  ])('%s', async (_, args, text) => {
    expect(await memwatch(args)).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining(text)
    })
  })
  it.each([[['--help']], [['--version']], [['run', '--help']]])('%j is not valid', async args => {
    expect(await memwatch(args)).toMatchObject({ code: 0, stderr: '' })
  })
})

it('an old Node.js causes a one-line error, even if modules do not load', () => {
  // Node.js before 18.19 lacks tracingChannel, so fastify throws on load. The preload creates
  // stderr before it removes this function.
  const preload = "data:text/javascript,import d from 'node:diagnostics_channel'; process.stderr; " +
    'delete d.tracingChannel'
  const { status, stderr } = spawnSync(
    process.execPath, ['--import', preload, MEMWATCH, '--version'],
    { encoding: 'utf8', env: environment() }
  )
  expect(stderr).toBe(
    `memwatch needs Node.js 20.19 or later (this is ${process.versions.node}). The agent runs on ` +
      '18 and later\n'
  )
  expect(status).toBe(2)
})
