'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { parse } = require('acorn')
const { compactModule, readCompactModule } = require('../../exporter/expose/compact-module')

const PAGE = path.join(__dirname, '../../exporter/page')
const OPTIONS = /** @type {const} */ ({ ecmaVersion: 'latest', sourceType: 'module' })

/** Syntax tree without positions. @param {string} source */
const treeOf = source => JSON.stringify(parse(source, OPTIONS),
  (key, value) => key === 'start' || key === 'end' ? undefined : value)

describe('a compact module', () => {
  it('keeps texts, and line breaks that end a statement', () => {
    expect(compactModule("const a = '// no' // yes\nconst b = `/* no */`/* yes */\n"))
      .toBe("const a = '// no'\nconst b = `/* no */`\n")
    const template = 'const c = `a\n  $' + '{ 1 }\n\n  b`'
    expect(compactModule(template)).toBe(template)
    const source = 'let a = 1 /* first\nsecond */ let b = a/**/+ 1\n'
    expect(treeOf(compactModule(source))).toBe(treeOf(source))
  })

  it.each(fs.readdirSync(PAGE).filter(name => name.endsWith('.mjs')))(
    '%s is the same program',
    name => {
      const source = fs.readFileSync(path.join(PAGE, name), 'utf8')
      const text = readCompactModule(path.join(PAGE, name))
      expect(treeOf(text)).toBe(treeOf(source))
      expect(text.length).toBeLessThan(source.length)
    }
  )
})
