'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: { 'web-tree-sitter': '0.25.10', 'tree-sitter-javascript': '0.25.0' } },
  fixed: {
    packages: { 'web-tree-sitter': '0.25.10', 'tree-sitter-javascript': '0.25.0' },
    label: 'web-tree-sitter 0.25.10, delete()'
  },
  expect: ['native-memory-leak'],
  culprit: null,
  load: '30 files of 8 kB a second',
  limitMib: 2048,
  async app ({ fixed, perSecond }) {
    const path = require('node:path')
    const { Parser, Language } = require('web-tree-sitter')
    await Parser.init()
    const parser = new Parser()
    const grammar = 'node_modules/tree-sitter-javascript/tree-sitter-javascript.wasm'
    parser.setLanguage(await Language.load(path.resolve(grammar)))
    const source = Array.from({ length: 200 }, (_, i) => `function f${i} (a) { return a + ${i} }`)
      .join('\n')
    perSecond(30, () => {
      const tree = parser.parse(source)
      if (fixed) tree.delete()
    })
  }
}
