'use strict'

const { execFileSync } = require('node:child_process')
const { splitNodeOptions } = require('@memwatch/agent/protocol/node-options')
const { Output } = require('../../cli/program/output')
const { withKubernetes } = require('../../engine/fixes/forms')
const { nodeFlagChange, nodeOptionsText, repeatable } = require('../../engine/fixes/node-flag')
const { pasteLine } = require('../../engine/fixes/paste-line')
const { comment } = require('../../engine/text/comment')
const { envLines } = require('../../engine/text/dockerfile')
const { toJson } = require('../../engine/text/json')
const { markdownCode, markdownText } = require('../../engine/text/markdown')
const { shellAssignments, shellWord } = require('../../engine/text/shell')
const { printable } = require('../../engine/text/printable')
const { terminalText } = require('../../cli/text/terminal')
const { toYaml } = require('../../engine/text/yaml')
const { hello } = require('../support/frames')
const {
  dockerfileVariables,
  shellReads,
  unprintableIn,
  yamlDocument
} = require('../support/strict-readers')

const TEXTS = [
  'plain',
  '',
  ' a ',
  "it's",
  '"',
  '\\',
  '$HOME',
  '$(id)',
  '`id`',
  'a\nb',
  '\u001b[2J',
  '*',
  '~',
  '#',
  '!x',
  'a;b',
  'ünï',
  '|',
  '&',
  '{a,b}',
  '😀',
  '\u202e',
  '\u0085',
  '\u2028',
  'on',
  '1e3',
  '- a',
  'a: b'
]

describe('a terminal', () => {
  it.each([
    [' ', ' '],
    ['~', '~'],
    ['é', 'é'],
    ['😀', '😀'],
    ['\u00a0', '\u00a0'],
    ['\n', '\\n'],
    ['\r', '\\r'],
    ['\t', '\\t'],
    ['\0', '\\x00'],
    ['\u001f', '\\x1f'],
    ['\u007f', '\\x7f'],
    ['\u0080', '\\x80'],
    ['\u009f', '\\x9f'],
    ['\u061c', '\\u061c'],
    ['\u200b', '\\u200b'],
    ['\u200e', '\\u200e'],
    ['\u2028', '\\u2028'],
    ['\u202e', '\\u202e'],
    ['\u2066', '\\u2066'],
    ['\ufeff', '\\ufeff'],
    ['\ud800', '\\ud800'],
    ['\udfff', '\\udfff'],
    ['\u{e0001}', '\\u{e0001}']
  ])('shows %j as %s', (character, shown) => {
    expect([printable(`a${character}b`), printable(printable(`a${character}b`))]).toEqual([
      `a${shown}b`,
      `a${shown}b`
    ])
  })

  /**
   * Text that a command writes to a terminal or to a file.
   * @param {boolean} isTTY
   * @param {(output: Output) => void} write
   */
  const written = (isTTY, write) => {
    let text = ''
    write(
      new Output(
        () =>
          /** @type {any} */ ({
            isTTY,
            columns: 20,
            rows: 3,
            write: part => {
              text += part
            }
          })
      )
    )
    return text
  }
  const hostile = '\u001b[2J\u009b31m\u202e\nx'
  it('gets only styles of memwatch', () => {
    expect(written(true, output => output.say({ text: hostile, style: 'red' }, hostile))).toBe(
      '\u001b[31m\\x1b[2J\\x9b31m\\u202e\\nx\u001b[39m\n\\x1b[2J\\x9b31m\\u202e\\nx\n'
    )
    expect(
      unprintableIn(written(false, output => output.say({ text: hostile, style: 'red' }, hostile)))
    ).toEqual([])
    expect(unprintableIn(terminalText([{ text: hostile, style: 'bold' }]))).toEqual([])
  })
  it('gets progress lines cut to its width, and erased before a permanent line', () => {
    expect(
      written(true, output => {
        output.redraw(hostile + 'y'.repeat(30))
        output.say('done')
        output.say('and')
      })
    ).toBe('\r\u001b[2K\\x1b[2J\\x9b31m\\u202\r\u001b[2Kdone\nand\n')
    expect(
      written(false, output => {
        output.redraw('half')
        output.clear()
        output.say('done')
      })
    ).toBe('done\n')
  })
  it('gets as many lines as fit on a screen', () => {
    expect(written(true, output => output.redrawScreen([hostile, 'b', 'c']))).toBe(
      '\u001b[H\u001b[J\\x1b[2J\\x9b31m\\u202e\\nx\nb'
    )
  })
  it.each([[0], [2]])('gets JSON that parses to the same value, indented by %i', indent => {
    const value = { [hostile]: TEXTS }
    const text = written(true, output => output.json(value, indent))
    expect([JSON.parse(text), unprintableIn(text)]).toEqual([value, []])
    expect(JSON.parse(toJson('a\ud800b'))).toBe('a\ufffdb')
  })
})

it('a shell reads each word unchanged', () => {
  const { words, files } = shellReads(TEXTS.map(shellWord))
  expect([words, files]).toEqual([TEXTS.map(text => [text]), []])
  expect(shellReads([shellAssignments({ A: '$(id) b', C: '' }).join(' ')]).words).toEqual([
    ['A=$(id) b', 'C=']
  ])
})
it.each([
  ['a-z_09./:=,@%+', true],
  ['~', false],
  ['a b', false],
  ['', false],
  ['é', false],
  ['*', false]
])('a shell needs no quotes for %j: %j', (text, isPlain) => {
  expect(shellWord(text) === text).toBe(isPlain)
})

it('YAML is one document, whatever its texts and comments', () => {
  const value = { texts: TEXTS, nested: [{ text: 'x'.repeat(200) + '\n---\n' + 'y'.repeat(200) }] }
  const text = toYaml(value, TEXTS)
  expect([yamlDocument(text), unprintableIn(text)]).toEqual([value, []])
  expect(text.split('\n').filter(line => line.startsWith('#'))).toHaveLength(TEXTS.length)
})

it('a comment is one line', () => {
  expect(comment('a\n---\r\u0085\u2028b')).toBe('# a\\n---\\r\\x85\\u2028b')
})

it('a Dockerfile sets each value unchanged if one line can hold it', () => {
  for (const value of TEXTS) {
    expect(dockerfileVariables(envLines({ NAME: value }).join('\n'))).toEqual({
      NAME: printable(value)
    })
  }
})

it.each([
  ['a b', '`a b`', 'a b'],
  ['a_b', '`a_b`', 'a&#95;b'],
  ['a|b', '<code>a&#124;b</code>', 'a&#124;b'],
  ['`', '<code>&#96;</code>', '&#96;'],
  ['<img onerror>', '<code>&#60;img&#32;onerror&#62;</code>', '&#60;img onerror&#62;'],
  ['a\nb', '`a\\nb`', 'a&#92;nb'],
  ['', '<code></code>', ''],
  [' a', '<code>&#32;a</code>', ' a'],
  ['&amp;', '<code>&#38;amp&#59;</code>', '&#38;amp;']
])('Markdown shows %j as %s in code, as %s in text', (text, code, plain) => {
  expect([markdownCode(text), markdownText(text)]).toEqual([code, plain])
})

describe('NODE_OPTIONS', () => {
  it.each([
    [
      [
        '--max-semi-space-size=16',
        '--inspect=[::1]:9229',
        '--title=a "b"',
        '-r',
        './a b.js',
        '--allow-fs-read=*',
        '--tls-cipher-list=A:!B',
        '--import=file:///srv/%C3%BC/ü.mjs?x#y'
      ],
      []
    ],
    [['--a'], ['--title=$(id)']],
    [['--a'], ['--title=`id`']],
    [['--a'], ['--title=\n']],
    [['--a'], ["--title='"]],
    [['--a'], ['--title=;']],
    [['--a'], ['--title=&']],
    [['--a'], ['--title=|']],
    [['--a'], ['--title=<']],
    [['--a'], ['--title={}']],
    [['--a'], ['--title=\u202e']],
    [['--a'], ['--title=\ud800']],
    [['--a'], ['--title=\u00a0']],
    [['--a'], ['--require', '/srv/$(id).js']],
    [['--a'], ['--title$', 'value']]
  ])('repeats %j and omits %j', (kept, left) => {
    expect([repeatable([...left, ...kept]), repeatable([...kept, ...left])]).toEqual([kept, kept])
  })
  it('is split by Node.js into the given options', () => {
    const options = ['--title=a "b" \\c', '--require', '/srv/a b.js', '']
    expect(splitNodeOptions(nodeOptionsText(options))).toEqual(options)
    const script =
      'console.log(JSON.stringify([process.title, require("node:module").builtinModules.length ' +
        '> 0]))'
    expect(
      JSON.parse(
        execFileSync(process.execPath, ['-e', script], {
          env: { ...process.env, NODE_OPTIONS: nodeOptionsText(['--title=a "b" \\c']) },
          encoding: 'utf8'
        })
      )
    ).toEqual(['a "b" \\c', true])
  })
  it('reports options that it omits', () => {
    const change = options =>
      nodeFlagChange(hello({ nodeOptions: options }), { '--max-old-space-size': 64 })
    expect(change(['--a', '--title=$(id)'])).toMatchObject({
      env: { NODE_OPTIONS: '--a --max-old-space-size=64' },
      note: expect.stringContaining('memwatch leaves out')
    })
    expect(change(['--a'])).not.toHaveProperty('note')
  })
})

it('a pasted fix yields its original words', () => {
  const fix = change => ({ title: 'Do it', change, predicted: [], risk: '' })
  expect(pasteLine(fix({ env: { NODE_OPTIONS: '--a=1' } }))).toBe('NODE_OPTIONS=--a=1')
  expect(
    shellReads([pasteLine(fix({ env: { NODE_OPTIONS: '--title=$(touch X) --a', B: "it's" } }))])
  ).toEqual({ words: [['NODE_OPTIONS=--title=$(touch X) --a', "B=it's"]], files: [] })
  expect([
    pasteLine(fix({ flag: '--a=1 --b' })),
    pasteLine(fix({ code: 'x' })),
    pasteLine(undefined)
  ]).toEqual(['--a=1 --b', 'Do it', ''])
})

it('Kubernetes expands nothing in a value', () => {
  expect(yamlDocument(String(withKubernetes({ env: { A: '$(B) $$' } }).kubernetes))).toEqual({
    env: [{ name: 'A', value: '$$(B) $$$$' }]
  })
})

it('the search for a fix does not load the YAML printer', () => {
  const fixes = ['node-flag', 'malloc', 'paste-line', 'forms'].map(name =>
    require.resolve(`../../engine/fixes/${name}`)
  )
  const code = `
    const [{ nodeFlagChange }, { jemallocChange }, { pasteLine }, { withKubernetes }] = ${JSON.stringify(fixes)}.map(file => require(file))
    const loaded = () => Object.keys(require.cache).some(file => file.includes('/node_modules/yaml/'))
    const target = ${JSON.stringify(hello())}
    const changes = [nodeFlagChange(target, { '--max-old-space-size': 64 }), jemallocChange(target)]
    for (const change of changes) pasteLine({ change })
    const found = loaded()
    changes.map(withKubernetes)
    console.log(JSON.stringify([found, loaded()]))`
  expect(JSON.parse(execFileSync(process.execPath, ['-e', code], { encoding: 'utf8' }))).toEqual([
    false,
    true
  ])
})
