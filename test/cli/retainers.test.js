'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFileSync } = require('node:child_process')
const { gzipSync } = require('node:zlib')
const { memwatch } = require('../support/memwatch')

const APP = path.join(__dirname, '../support/holding-app.js')
const SECRET = 'correct horse battery staple'

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'retainers-'))
afterAll(() => fs.rmSync(folder, { recursive: true }))

const earlier = path.join(folder, 'earlier.heapsnapshot')
const later = path.join(folder, 'later.heapsnapshot')
beforeAll(() => {
  execFileSync(process.execPath, [APP, 'Map of a module', earlier, later], { stdio: 'ignore' })
})

const HELD = /- (\d[\d,]*) Item objects, .* KiB, held by Map `sessions`\s+in\s+\S*holding-app\.js:\d+/

describe('memwatch retainers', () => {
  it('names the piles of objects and their holders', async () => {
    const { code, stdout, stderr } = await memwatch(['retainers', earlier])
    expect(stderr).toBe('')
    expect(code).toBe(0)
    expect(HELD.exec(stdout)?.[1]).toBe('500')
  })

  it('reports the objects that are new in the second of two snapshots', async () => {
    const { stdout } = await memwatch(['retainers', earlier, later, '-v'])
    expect(HELD.exec(stdout)?.[1]).toBe('500')
    expect(stdout).toMatch(/objects, .*, came since/)
    expect(stdout).toContain('variable sessions → Map')
    const { stdout: whole } = await memwatch(['retainers', later])
    expect(HELD.exec(whole)?.[1]).toBe('1,000')
  })

  it('reads gzip, and prints and writes JSON', async () => {
    const packed = path.join(folder, 'packed.heapsnapshot.gz')
    const report = path.join(folder, 'report.json')
    fs.writeFileSync(packed, gzipSync(fs.readFileSync(earlier)))
    const { stdout } = await memwatch(['retainers', packed, '--json', '--out', report])
    const { schema, earlier: before, findings: [first] } = JSON.parse(stdout)
    expect(schema).toBe(1)
    expect(before).toBe(null)
    expect(first).toMatchObject({
      count: 500,
      className: 'Item',
      holder: { kind: 'Map', name: 'sessions', nameKind: 'variable' },
      root: { kind: 'module' }
    })
    expect(JSON.parse(fs.readFileSync(report, 'utf8'))).toEqual(JSON.parse(stdout))
  })

  it('writes a redacted copy with the same finding, readable by this user only', async () => {
    const copy = path.join(folder, 'copy.heapsnapshot')
    const { code, stderr } = await memwatch(['retainers', earlier, '--redact', '--out', copy])
    expect(code).toBe(0)
    expect(stderr).toMatch(/\d{3,} strings redacted/)
    expect(fs.readFileSync(copy).includes(SECRET)).toBe(false)
    expect(fs.statSync(copy).mode & 0o077).toBe(0)
    const { stdout } = await memwatch(['retainers', copy])
    expect(HELD.exec(stdout)?.[1]).toBe('500')
    const again = await memwatch(['retainers', earlier, '--redact', '--out', copy])
    expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining('already exists') })
  })

  it.each([
    ['a snapshot that needs more memory than allowed', () => [earlier, '--memory', '64Mi'],
      /\d+ nodes and \d+ edges need more memory than allowed: \d+ MiB predicted, 64 MiB allowed; --memory allows more/],
    ['a file that breaks off', () => [cut()], /ends within "nodes", at byte 100000/],
    ['a file that is not a snapshot', () => [__filename], /not a heap snapshot of V8/],
    ['a missing file', () => ['none.heapsnapshot'], /cannot read none\.heapsnapshot/],
    ['two inputs to redact', () => [earlier, later, '--redact'], /--redact: expected one snapshot, got a second/],
    ['--redact without a place', () => [earlier, '--redact'], /expected --out FILE for the copy, got none/]
  ])('refuses %s, with status 2', async (_, args, why) => {
    const { code, stdout, stderr } = await memwatch(['retainers', ...args()])
    expect(stderr.replace(/\s+/g, ' ')).toMatch(why)
    expect(stderr.split('\n')).toHaveLength(2)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  })

  it('leaves no copy if the snapshot is incomplete', async () => {
    const copy = path.join(folder, 'half.heapsnapshot')
    const { code } = await memwatch(['retainers', cut(), '--redact', '--out', copy])
    expect(code).toBe(2)
    expect(fs.existsSync(copy)).toBe(false)
  })
})

/** @returns {string} path of a snapshot whose writer was killed */
function cut () {
  const file = path.join(folder, 'cut.heapsnapshot')
  fs.writeFileSync(file, fs.readFileSync(earlier).subarray(0, 100_000))
  return file
}
