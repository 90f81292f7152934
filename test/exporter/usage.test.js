'use strict'

const { spawnSync } = require('node:child_process')
const { environment } = require('../support/agent-collector')
const { memwatch, MEMWATCH } = require('../support/memwatch')
const { program } = require('../../cli/memwatch')

describe('a command line that cannot be carried out ends with status 2, and says why:', () => {
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
    ['a value that the command refuses', ['run', '--for', 'ever', '--', 'node'], '--for: expected']
  ])('%s', async (_, args, text) => {
    expect(await memwatch(args)).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining(text)
    })
  })
  it.each([[['--help']], [['--version']], [['run', '--help']]])('%j is none', async args => {
    expect(await memwatch(args)).toMatchObject({ code: 0, stderr: '' })
  })
})

it('a Node.js that is too old is told so in one line, also where it cannot load what is asked for', () => {
  // As before 18.19: fastify would throw while it is loaded. Node.js itself has its streams first.
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
