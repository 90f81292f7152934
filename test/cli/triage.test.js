'use strict'

const { execFileSync } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { firstAid, describeContainer, measures } = require('../../cli/triage/first-aid')
const { tar } = require('../../cli/triage/tar')
const { toHtml, toMarkdown } = require('../../cli/triage/triage-documents')
const { openShipping } = require('../../cli/triage/triage-shipping')
const { diagnoses } = require('../../engine/diagnoses')
const { defined } = require('../support/defined')
const { startObjectServer } = require('../support/object-server')

const HOSTILE = '<img src=x onerror=alert(1)> ``` # [a](javascript:b) \x1b[31m\n&"\''
const SECTIONS = [{ title: HOSTILE, lines: [HOSTILE, { text: HOSTILE, style: /** @type {const} */ ('red') }] }]

describe('documents of triage', () => {
  it('show hostile text in HTML as text', () => {
    const html = toHtml(HOSTILE, SECTIONS)
    const own = /<\/?(!doctype|html|meta|title|style|h1|h2|pre|b)\b[^<>]*>/g
    expect(html.replace(own, '')).not.toMatch(/[<>]/)
    expect(html).not.toContain('\x1b')
    expect(html).toContain('&#60;img src=x onerror=alert(1)&#62;')
    expect(html).toContain("default-src 'none'")
  })

  it('show hostile text in Markdown as text', () => {
    const lines = toMarkdown(HOSTILE, SECTIONS).split('\n')
    expect(lines.filter(line => line.includes('img')).map(line => line.slice(0, 4)))
      .toEqual(['# &#', '## &', '    ', '    '])
    for (const line of lines.filter(line => line.startsWith('#'))) expect(line).not.toMatch(/[<`[]/)
  })

  it('are unpacked unchanged by tar', () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-tar-'))
    const files = [
      { name: 'report.md', mode: 0o600, content: Buffer.from('x'.repeat(512)) },
      { name: 'captures/a.json', mode: 0o600, content: Buffer.alloc(0) },
      { name: 'last', mode: 0o644, content: Buffer.from('é') }
    ]
    fs.writeFileSync(path.join(folder, 'a.tar'), tar(files))
    execFileSync('tar', ['-xf', 'a.tar'], { cwd: folder })
    for (const { name, content } of files) {
      expect(fs.readFileSync(path.join(folder, name))).toEqual(content)
    }
    fs.rmSync(folder, { recursive: true })
  })
})

describe('first aid', () => {
  const verdict = (/** @type {object} */ of) => (
    { diagnosis: 'js-heap-leak', state: 'confirmed', opportunity: false, secondsLeft: null, fix: [], ...of }
  )
  const report = (/** @type {object[]} */ verdicts, ended = false) => /** @type {any} */ ({
    attached: { pid: 7, ended }, targets: [{ headline: { open: ['resource-leak'] }, verdicts }]
  })

  it('begins with the remaining time', () => {
    const steps = firstAid(report([
      verdict({ secondsLeft: 900 }), verdict({ diagnosis: 'resource-leak', secondsLeft: 300 }),
      verdict({ diagnosis: 'heap-limit-thrash', state: 'ok', secondsLeft: 1 })
    ]))
    expect(steps[0]).toContain('within 5 min')
    expect(steps.join(' ')).not.toContain('GCs')
  })

  it('names the fix, each measure once, and a longer watch if nothing is decided', () => {
    const leak = verdict({ fix: [{ title: 'Let it go' }] })
    const steps = firstAid(report([leak, leak]))
    expect(steps).toContain('Then, against js-heap-leak: Let it go.')
    expect(new Set(steps).size).toBe(steps.length)
    expect(firstAid(report([]))[0]).toContain('memwatch triage 7 --for 300')
    expect(firstAid(report([], true))[0]).toContain('has ended')
  })

  it('exists only for existing diagnoses', () => {
    const ids = diagnoses.map(({ id }) => id)
    expect(Object.keys(measures).filter(id => !ids.includes(id))).toEqual([])
  })

  it('describes the container', () => {
    expect(describeContainer({})).toEqual(['No memory limit is visible.'])
    const [limits, kills] = describeContainer({
      containerLimitBytes: 2 ** 29, containerUsageBytes: 2 ** 28, containerWorkingSetBytes: 2 ** 27,
      containerOomKills: 2
    })
    expect(limits).toBe('Limit 512 MiB, in use 256 MiB, working set 128 MiB.')
    expect(kills).toContain('killed 2 processes')
  })
})

describe('the file of triage', () => {
  const files = [
    { name: 'report.md', mode: 0o600, content: Buffer.from('report') },
    { name: 'captures/a.heapsnapshot', mode: 0o600, content: Buffer.from('{}'), isSnapshot: true }
  ]
  const of = { target: '../shop', pid: 7, files, signal: new AbortController().signal }
  /** @type {Awaited<ReturnType<typeof startObjectServer>>} */
  let server
  beforeEach(async () => { server = await startObjectServer() })
  afterEach(() => server.stop())
  /** @param {object} [given] */
  const open = given => defined(openShipping({ shipTo: `${server.url}/of`, ...given }, { delayMs: 1 }))
  /** @param {Buffer} archive */
  const list = archive =>
    execFileSync('tar', ['-tz'], { input: archive, encoding: 'utf8' }).trim().split('\n')

  it('is sent without heap snapshots, unless they are allowed', async () => {
    const { key, omitted } = await open()(of)
    expect(key).toMatch(/^__shop\/\d{4}-\d\d-\d\d\/\d{6}-triage-7\.memwatch\.tgz$/)
    expect(omitted).toBe(1)
    expect(list(defined(server.objects.get(`/of/${key}`)))).toEqual(['report.md'])
    const whole = await open({ shipSnapshots: 'on' })(of)
    expect(whole.omitted).toBe(0)
    expect(list(defined(server.objects.get(`/of/${whole.key}`))))
      .toEqual(['report.md', 'captures/a.heapsnapshot'])
  })

  it('is sent again, at most three times, if a retry may succeed', async () => {
    server.answers.push(500, 500)
    await open()(of)
    expect(server.requests).toHaveLength(3)
    server.answers.push(500, 500, 500)
    await expect(open()(of)).rejects.toThrow('it answered 500')
    expect(server.requests).toHaveLength(6)
    server.answers.push(404)
    await expect(open()(of)).rejects.toThrow('it answered 404')
    expect(server.requests).toHaveLength(7)
  })

  it('is not sent without the option, and a wrong address is reported before the watch', () => {
    expect(openShipping({})).toBeUndefined()
    expect(() => openShipping({ shipTo: 'http://store.example.com/of' })).toThrow(/--ship-to: .*without encryption/)
    expect(() => openShipping({ shipTo: 'file:///tmp', shipHttp: 'maybe' }))
      .toThrow('--ship-http: expected one of on, off')
  })
})
