'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { spawnSync } = require('node:child_process')

const FOLDER = path.join(__dirname, '../../bench')
const run = (file, ...args) =>
  spawnSync(process.execPath, [path.join(FOLDER, file), ...args], { encoding: 'utf8' })

describe('the options of a bench', () => {
  const benches = fs.readdirSync(FOLDER).filter(file =>
    file !== 'options.js' && /\.js$/.test(file) &&
    fs.readFileSync(path.join(FOLDER, file), 'utf8').includes('parseOptions('))

  it('every bench that reads options begins with a comment that names its command', () => {
    expect(benches.length).toBeGreaterThan(20)
    for (const file of benches) {
      const text = fs.readFileSync(path.join(FOLDER, file), 'utf8')
      expect(text).toMatch(/^'use strict'\n\n\/\*\*\n \* `npm run bench:[a-z-]+` /)
    }
  })

  it('--help prints that comment, and a wrong option names itself', () => {
    const help = run('gc-count.js', '--help')
    expect([help.status, help.stderr]).toEqual([0, ''])
    expect(help.stdout)
      .toMatch(/^`npm run bench:gc-count` .*\n[^*]*npm run bench:gc-count -- --nodes/)
    const wrong = run('gc-count.js', '--colour')
    expect([wrong.status, wrong.stdout]).toEqual([2, ''])
    expect(wrong.stderr).toMatch(/^Unknown option '--colour'.* \(--help lists the options\)\n$/)
  })
})
