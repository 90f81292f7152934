'use strict'

const fs = require('node:fs')
const path = require('node:path')

/** @type {Partial<import('../cases').Healthy>} */
module.exports = {
  title: 'jest with 150 test files in one process',
  packages: { jest: '30.2.0', lodash: '4.17.21', rxjs: '7.8.2' },
  limitMib: 2048,
  seconds: 180,
  load: 'one run',
  prepare (folder) {
    fs.mkdirSync(path.join(folder, 'test'), { recursive: true })
    for (let i = 0; i < 150; i++) {
      fs.writeFileSync(path.join(folder, `test/case${i}.test.js`), [
        "const lodash = require('lodash'); const rxjs = require('rxjs')",
        `test.each(lodash.range(50))('case %i', n => expect(lodash.chunk([n, ${i}], 1)[0][0]).toBe(n))`,
        "test('a stream', done => rxjs.of(1).subscribe({ complete: () => done() }))"
      ].join('\n'))
    }
  },
  command: ['node_modules/jest/bin/jest.js', '--runInBand', '--rootDir', '.', '--silent']
}
