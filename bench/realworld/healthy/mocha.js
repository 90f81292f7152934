'use strict'

const fs = require('node:fs')
const path = require('node:path')

/** @type {Partial<import('../cases').Healthy>} */
module.exports = {
  title: 'mocha with 300 test files that each keep a server for a while',
  packages: { mocha: '11.7.4', chai: '4.5.0' },
  seconds: 120,
  load: 'one run',
  prepare (folder) {
    fs.mkdirSync(path.join(folder, 'test'), { recursive: true })
    for (let i = 0; i < 300; i++) {
      fs.writeFileSync(path.join(folder, `test/case${i}.js`), [
        "const { expect } = require('chai'); const http = require('node:http')",
        `describe('part ${i}', () => { let server`,
        '  before(done => { server = http.createServer((q, s) => s.end("x".repeat(1e5))).listen(0, done) })',
        '  after(done => { server.closeAllConnections(); server.close(done) })',
        '  for (let n = 0; n < 20; n++) it("answers " + n, async () => {',
        '    const answer = await fetch("http://127.0.0.1:" + server.address().port)',
        '    expect((await answer.text()).length).to.equal(1e5) }) })'
      ].join('\n'))
    }
  },
  command: ['node_modules/mocha/bin/mocha.js', '--reporter', 'dot']
}
