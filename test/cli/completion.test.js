'use strict'

const fs = require('node:fs')
const http = require('node:http')
const os = require('node:os')
const path = require('node:path')
const { once } = require('node:events')
const { spawnSync } = require('node:child_process')
const { environment, spawnBounded } = require('../support/agent-collector')
const { eventually } = require('../support/exporter')
const { freePort } = require('../support/free-port')
const { MEMWATCH, memwatch } = require('../support/memwatch')
const { program } = require('../../cli/memwatch')
const { diagnoses } = require('../../engine/diagnoses')

const IDS = diagnoses.map(({ id }) => id).sort()
const COMMANDS = program.commands.map(command => command.name()).sort()
/** Names that leave a trace if a shell executes them. */
const HOSTILE = ['$(touch pwned)', '`touch pwned`', 'a;touch pwned', "a'b", '-x', 'a b', '\x1b[31m']

let folder
let server
let answer
beforeAll(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-completion-'))
  fs.writeFileSync(
    path.join(folder, 'memwatch'), `#!/bin/sh\nexec '${process.execPath}' '${MEMWATCH}' "$@"\n`,
    { mode: 0o755 }
  )
  fs.writeFileSync(path.join(folder, 'app.gz'), '')
  server = http.createServer((request, response) => answer(response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
  fs.rmSync(folder, { recursive: true })
})
beforeEach(() => {
  const names = ['shop', 'shop-2', '@acme/orders', ...HOSTILE]
  answer = response => response.end(JSON.stringify(names.map(target => ({ target }))))
})

/** @param {string} [url] */
const env = (url = `http://127.0.0.1:${server.address().port}`) =>
  environment({ PATH: `${folder}:${process.env.PATH}`, MEMWATCH_URL: url, HOME: folder })
/**
 * @param {string} shell
 * @param {string[]} args
 * @param {string} [url]
 */
async function say (shell, args, url) {
  const { stdout, stderr } = await spawnBounded(shell, args, { cwd: folder, env: env(url) }).ended
  expect(stderr).toBe('')
  expect(fs.existsSync(path.join(folder, 'pwned'))).toBe(false)
  return stdout.split('\n').filter(Boolean).sort()
}

/** Proposals of each shell for a line, by the shell's own completion. */
const SHELLS = {
  bash: (line, url) => say('bash', ['--norc', '-c', `
    source completion.bash
    compopt () { mapfile -t COMPREPLY < <(compgen -f -- "$word"); }
    line=$1; read -ra COMP_WORDS <<< "$line"; [[ $line == *' ' ]] && COMP_WORDS+=('')
    COMP_CWORD=$(( \${#COMP_WORDS[@]} - 1 )); _memwatch
    [[ \${#COMPREPLY[@]} -eq 0 ]] || printf '%s\\n' "\${COMPREPLY[@]}"`, 'bash', line], url),
  // The script replaces compadd and _describe, which need a terminal, with functions that print.
  zsh: async (line, url) => (await say('zsh', ['-f', '-c', `
    compdef () { }
    source ./completion.zsh
    _files () { print -l *(N) }
    compadd () { shift; print -l -- "\${(@M)@:#$words[CURRENT]*}" }
    _describe () { print -l -- "\${(@M)\${(@P)@[-1]}:#$words[CURRENT]*}" }
    words=("\${(@s: :)1}"); CURRENT=$#words; _memwatch`, 'zsh', line], url)).map(found => found.split(':')[0]),
  fish: async (line, url) => (await say('fish', ['--no-config', '-c', `
    source completion.fish
    complete -C $argv[1]`, line], url)).map(found => found.split('\t')[0]).sort()
}

/** @param {string} shell */
function describeShell (shell) {
  const isInstalled = spawnSync(shell, ['--version']).error === undefined
  if (!isInstalled) process.stderr.write(`SKIPPED: completion in ${shell}: it is not installed\n`)
  return isInstalled ? describe : describe.skip
}

describe.each(Object.keys(SHELLS))('completion for %s', shell => {
  beforeAll(async () => {
    const { stdout } = await memwatch(['completion', shell])
    fs.writeFileSync(path.join(folder, `completion.${shell}`), stdout)
  })
  afterAll(() => fs.rmSync(path.join(folder, `completion.${shell}`)))
  it('names every command, option, and id of a diagnosis', async () => {
    const { code, stdout, stderr } = await memwatch(['completion', shell])
    expect([code, stderr]).toEqual([0, ''])
    for (const command of program.commands) {
      expect(stdout).toMatch(new RegExp(`\\b${command.name()}\\b`))
      for (const { long } of command.options) expect(stdout).toContain(long?.replace('--', ''))
    }
    for (const id of IDS) expect(stdout).toContain(id)
  })

  describeShell(shell)(`in ${shell} itself`, () => {
    const propose = SHELLS[shell]
    it.each([
      ['memwatch tr', ['triage', 'trim', 'try']],
      ['memwatch fix --form', ['--format']],
      ['memwatch fix --format d', ['dockerfile']],
      ['memwatch fix shop --diagnosis js', ['js-heap-leak']],
      ['memwatch try --diagnosis ', IDS],
      ['memwatch exporter --on-failure ', ['exit', 'stay']],
      ['memwatch fix sh', ['shop', 'shop-2']],
      ['memwatch doctor ', ['@acme/orders', 'shop', 'shop-2']],
      ['memwatch capture shop heap_p', ['heap_profile']]
    ])('%s', async (line, expected) => {
      // On a busy machine an exporter may not answer within the time limit of a completion.
      expect(await eventually(() => propose(line), found => found.length > 0)).toEqual(expected)
    })
    it('proposes every command first', async () => {
      expect(await propose('memwatch ')).toEqual(expect.arrayContaining(COMMANDS))
    })
    it('proposes files for arguments and values that are files', async () => {
      expect(await propose('memwatch diagnose ')).toContain('app.gz')
      expect(await propose('memwatch run --record ')).toContain('app.gz')
    })
    it('proposes no target if no exporter answers', async () => {
      expect(await propose('memwatch doctor ', `http://127.0.0.1:${await freePort()}`)).toEqual([])
    })
  })
})

describe('memwatch completion targets', () => {
  const targets = url => say(path.join(folder, 'memwatch'), ['completion', 'targets'], url)
  it('lists only names without special characters of shells', async () => {
    expect(await targets()).toEqual(['@acme/orders', 'shop', 'shop-2'])
  })
  it.each([
    ['says nothing', () => {}],
    ['refuses', response => response.writeHead(401).end('{}')],
    ['says something else', response => response.end('nonsense')]
  ])('lists no names of an exporter that %s, and ends at once', async (_, reply) => {
    answer = reply
    expect(await targets()).toEqual([])
  })
})

it('memwatch completion refuses an unknown shell', async () => {
  expect(await memwatch(['completion', 'tcsh'])).toMatchObject({
    code: 2, stdout: '', stderr: expect.stringContaining('bash, zsh, fish or targets')
  })
})
