'use strict'

const { memwatch } = require('../support/memwatch')
const { program } = require('../../cli/memwatch')

describe('a command line that cannot be carried out ends with status 2, and says why:', () => {
  it.each(program.commands.map(command => command.name()))(
    'an unknown option of %s',
    async name => {
      expect(await memwatch([name, '--nonsense'])).toMatchObject({
        code: 2,
        stdout: '',
        stderr: expect.stringMatching(/^error: /)
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
