'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: { '@swc/core': '1.7.14' } },
  fixed: { packages: { '@swc/core': '1.13.5' } },
  expect: ['native-memory-leak', 'allocator-fragmentation'],
  culprit: null,
  load: '100 files of 6 kB a second, each with names of its own',
  limitMib: 1024,
  app ({ perSecond }) {
    const { parse } = require('@swc/core')
    const sourceOf = n => Array.from({ length: 100 }, (_, i) =>
      `export const name_${n}_${i} = (argument_${n}_${i}) => argument_${n}_${i} + '${n} ${i}'`)
      .join('\n')
    perSecond(100, n => parse(sourceOf(n), { syntax: 'typescript', target: 'es2021' }))
  }
}
