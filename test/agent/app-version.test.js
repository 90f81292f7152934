'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { spawnSync } = require('node:child_process')
const { rebuilds } = require('../../engine/decode/rebuild')
const { hello } = require('../support/frames')

const IDENTITY = path.join(__dirname, '../../agent/identity.js')

describe('the version of the app', () => {
  let folder
  beforeAll(() => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-version-'))
    fs.writeFileSync(path.join(folder, 'app.js'),
      `console.log(JSON.stringify(require(${JSON.stringify(IDENTITY)}).hello({ name: 'shop' })))`)
  })
  afterAll(() => fs.rmSync(folder, { recursive: true }))

  const LONGEST = `1${'0'.repeat(63)}`
  it.each([
    ['that of package.json', { version: '4.3.0' }, undefined, '4.3.0'],
    ['service.version before it', { version: '4.3.0' }, 'service.version=4.4.0-rc.1+b7', '4.4.0-rc.1+b7'],
    ['service.version among others', {}, 'service.name=shop,service.version=v2_7,a=b', 'v2_7'],
    ['no attribute that only ends so', { version: '1.0.0' }, 'a.service.version=9', '1.0.0'],
    ['the longest', { version: LONGEST }, undefined, LONGEST],
    ['none that is longer', { version: `${LONGEST}0` }, undefined, undefined],
    ['none with other characters', { version: '4.3.0" evil' }, undefined, undefined],
    ['none that is no text', { version: { valueOf: 1 } }, undefined, undefined],
    ['none without either', {}, undefined, undefined]
  ])('is %s', (_, version, attributes, expected) => {
    fs.writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ name: 'app', ...version }))
    const { OTEL_RESOURCE_ATTRIBUTES, ...env } = process.env
    const { stdout } = spawnSync(process.execPath, [path.join(folder, 'app.js')], {
      encoding: 'utf8',
      env: { ...env, ...(attributes && { OTEL_RESOURCE_ATTRIBUTES: attributes }) }
    })
    const said = JSON.parse(stdout)
    expect(said.appVersion).toBe(expected)
    expect(rebuilds.hello(said)?.appVersion).toBe(expected)
  })

  it.each(['', `${LONGEST}0`, '4.3.0\n', '-1', 'a b', 430])(
    'rejects a hello whose version is %j', version => {
      expect(rebuilds.hello(hello({ appVersion: version }))).toBeUndefined()
    }
  )
})
