'use strict'

const fs = require('node:fs')
const path = require('node:path')

/** @type {Partial<import('../cases').Healthy>} */
module.exports = {
  title: 'jest with 400 test files in one process',
  packages: { jest: '30.2.0', lodash: '4.17.21' },
  limitMib: 2048,
  seconds: 180,
  load: 'one run',
  prepare (folder) {
    fs.mkdirSync(path.join(folder, 'test'), { recursive: true })
    for (let i = 0; i < 400; i++) {
      fs.writeFileSync(path.join(folder, `test/case${i}.test.js`), [
        "const lodash = require('lodash'); const { once, EventEmitter } = require('node:events')",
        `test.each(lodash.range(50))('case %i', n => expect(lodash.chunk([n, ${i}], 1)[0][0]).toBe(n))`,
        "test('an event', () => { const e = new EventEmitter(); setImmediate(() => e.emit('a')); return once(e, 'a') })"
      ].join('\n'))
    }
  },
  command: ['node_modules/jest/bin/jest.js', '--runInBand', '--rootDir', '.', '--silent']
}
