'use strict'

const { startExporter, eventually } = require('../support/exporter')
const { freePort } = require('../support/free-port')
const { spawnWatched } = require('../support/agent-collector')
const { memwatch } = require('../support/memwatch')
const { sparkline } = require('../../cli/text/sparkline')
const { terminalText } = require('../../cli/text/terminal')
const { TopView } = require('../../cli/top/top-view')

describe('a sparkline', () => {
  it.each([
    [[], 4, '    '],
    [[1], 4, '   ▁'],
    [[5, 5, 5, 5], 4, '▁▁▁▁'],
    [[0, 1, 2, 3, 4, 5, 6, 7], 8, '▁▂▃▄▅▆▇█'],
    [[0, 7], 4, '  ▁█'],
    [[0, 0, 0, 9, 0, 0, 0, 0], 4, '▁█▁▁'],
    [[1, null, null, 2], 4, '▁  █']
  ])('of %j in %i columns', (values, width, text) => {
    expect(sparkline(values, width)).toBe(text)
  })
})

it('memwatch top shows targets with findings first, cut to the width of the terminal', async () => {
  const exporter = await startExporter({ autoCaptures: false })
  const start = (name, code) =>
    spawnWatched({
      args: ['-e', code],
      socket: exporter.socket.path,
      env: { MEMWATCH_NAME: name },
      timeoutMs: 60_000
    })
  const apps = [
    start('calm', 'setInterval(() => {}, 1000)'),
    start(
      'blocked',
      // CPU time, as a fast processor ends a fixed number of iterations too soon to block.
      `setInterval(() => {
        for (const from = process.cpuUsage(); process.cpuUsage(from).user < 600_000;) {
          require('crypto').pbkdf2Sync('a', 'b', 50_000, 64, 'sha512')
        }
      }, 1000)`
    )
  ]
  try {
    await eventually(
      async () => (await exporter.get('/api/v1/diagnoses')).json(),
      targets =>
        targets.some(({ verdicts }) =>
          verdicts.some(({ state }) => state === 'suspected' || state === 'confirmed')
        ),
      30_000
    )
    const { code, stdout, stderr } = await memwatch(['top', '--url', exporter.url])
    const [about, blank, head, ...rows] = stdout.trimEnd().split('\n')
    expect([about, blank]).toEqual([expect.stringMatching(/^memwatch top · http:.* · 2 targets · /), ''])
    expect([code, stderr, head.split(/ {2,}/)]).toEqual([
      0,
      '',
      ['target', 'RSS', 'of limit', 'heap', 'GC', 'loop', 'RSS, 5 min', 'verdict']
    ])
    expect(rows).toEqual([
      expect.stringMatching(
        /^[~!] blocked .* MiB .* % .* (Suspected|Confirmed).*: event-loop-blocked: /
      ),
      expect.stringMatching(/^\? calm .* MiB .* % .*Undecided: /)
    ])
  } finally {
    for (const { child, ended } of apps) {
      child.kill('SIGKILL')
      await ended
    }
    await exporter.stop()
  }
}, 60_000)

describe('the screen of memwatch top', () => {
  const FINDING = {
    state: 'confirmed',
    severity: 'critical',
    diagnosis: 'js-heap-leak',
    text: 'Confirmed: js-heap-leak: The live heap grows by 116 MiB/min.'
  }
  const HEALTHY = {
    state: 'ok', severity: null, diagnosis: null, text: 'Healthy: 12 checks ruled out.'
  }
  // The fields of a target that a row shows.
  const row = (name, changes = {}) => /** @type {import('../../cli/top').Row} */ (
    /** @type {unknown} */ ({
      target: { target: name, thread: 'main', pid: 1 },
      judged: {
        target: name,
        thread: 'main',
        pid: 1,
        node: '24.0.0',
        memory: null,
        headline: HEALTHY,
        verdicts: []
      },
      name,
      values: { rssBytes: 2 ** 30, containerLimitBytes: 2 ** 31, heapUsedBytes: 2 ** 29 },
      rss: [1, 2],
      loopRatio: 0.5,
      gcRatio: 0.03,
      up: true,
      silence: null,
      headline: HEALTHY,
      ...changes
    }))
  const size = { width: 200, height: 40 }
  /** @param {import('../../cli/top').Row[]} rows */
  const viewOf = (...rows) => Object.assign(new TopView('http://127.0.0.1:1'), { rows })
  const linesOf = (view, options = size) => terminalText(view.render(options)).split('\n')
  const namesOf = view => linesOf(view).slice(4, -1).map(line => line.split(' ')[1])

  it('drops the least important columns if it is narrow, and cuts the rest', () => {
    const view = viewOf(row('shop', { headline: FINDING }))
    const headsAt = width => linesOf(view, { ...size, width })[3].split(/ {2,}/)
    expect(headsAt(200)).toEqual(
      ['target', 'RSS', 'of limit', 'heap', 'GC', 'loop', 'RSS, 5 min', 'verdict'])
    expect(headsAt(80)).toEqual(['target', 'RSS', 'of limit', 'GC', 'verdict'])
    expect(headsAt(50)).toEqual(['target', 'verdict'])
    for (const width of [40, 50, 80, 120]) {
      const lengths = linesOf(view, { ...size, width }).map(line => line.length)
      expect(Math.max(...lengths)).toBeLessThanOrEqual(width)
    }
  })

  it('cuts a verdict after a whole word, and a word that fills the line anywhere', () => {
    const long = row('shop', { headline: { ...FINDING, text: `${FINDING.text} ${'More words. '.repeat(9)}` } })
    for (let width = 60; width <= 120; width++) {
      const line = linesOf(viewOf(long), { ...size, width })[4]
      const kept = line.slice(line.indexOf('Confirmed'), -1)
      expect(line).toMatch(/…$/)
      expect(long.headline?.text.slice(kept.length)).toMatch(/^ /)
    }
    const name = 'n'.repeat(90)
    expect(linesOf(viewOf(row(name)), { ...size, width: 80 })[4]).toBe(`✓ ${name.slice(0, 77)}…`)
  })

  it('shows the state as a symbol and a colour, and ended targets as gone', () => {
    const dead = row('old', { headline: FINDING, up: false, death: 'oom kill' })
    const view = viewOf(row('shop', { headline: FINDING }), dead, row('calm'))
    const text = terminalText(view.render(size), { colour: true })
    expect(text).toContain('\u001b[31m! shop')
    expect(text).toContain('\u001b[2m! old')
    expect(text).toMatch(/old .*Gone \(oom kill\)/)
    expect(text).toContain('\n✓ calm')
    expect(linesOf(view)[0])
      .toBe('memwatch top · http://127.0.0.1:1 · 3 targets · 2 confirmed · 1 gone')
  })

  it('sorts, filters, and clears the filter', () => {
    const ill = row('shop', { headline: FINDING, gcRatio: 0.1 })
    const view = viewOf(ill, row('search', { gcRatio: 0.4 }), row('cron'))
    expect(namesOf(view)).toEqual(['shop', 'search', 'cron'])
    for (const key of 'sss') view.press(key)
    expect(namesOf(view)).toEqual(['search', 'shop', 'cron'])
    expect(linesOf(view)[1]).toBe('sorted by GC')
    view.press('/')
    view.press('js-heap')
    expect(namesOf(view)).toEqual(['shop'])
    view.press('\u001b')
    expect(namesOf(view)).toEqual(['search', 'shop', 'cron'])
  })

  it('opens the selected target, which stays selected when others appear, and returns', () => {
    const view = viewOf(row('shop'), row('cron'))
    view.press('\u001b[B')
    view.press('j')
    view.rows = [row('new', { headline: FINDING }), ...view.rows]
    expect(terminalText(view.render(size), { colour: true })).toContain('\u001b[7m✓ cron')
    view.press('\r')
    expect(linesOf(view).join('\n')).toContain('cron main, pid 1, Node 24.0.0')
    view.press('\u001b')
    expect(namesOf(view)).toEqual(['new', 'shop', 'cron'])
    view.press('?')
    expect(linesOf(view).join('\n')).toContain('select the next')
  })

  it('ends only on q and Ctrl-C; in the filter, q is text', () => {
    const view = viewOf(row('queue'), row('cron'))
    expect([...'jks'].map(key => view.press(key))).toEqual([true, true, true])
    view.press('/')
    expect(view.press('q')).toBe(true)
    expect(namesOf(view)).toEqual(['queue'])
    expect(view.press('\u0003')).toBe(false)
    view.press('\r')
    expect(view.press('q')).toBe(false)
  })

  it('shows as many rows as fit, including the selected one', () => {
    const view = viewOf(...Array.from({ length: 30 }, (_, i) => row(`app-${i}`)))
    for (let i = 0; i < 25; i++) view.press('j')
    const lines = linesOf(view, { width: 100, height: 12 })
    expect(lines.length).toBeLessThanOrEqual(12)
    expect(lines.join('\n')).toContain('app-24')
  })

  it('shows the first steps if there is no target', () => {
    expect(linesOf(viewOf()).join('\n')).toContain('node -r memwatch/agent')
  })
})

it('a missing exporter is reported', async () => {
  const { code, stderr } = await memwatch(['top', '--url', 'http://127.0.0.1:9'])
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining('no exporter answers at http://127.0.0.1:9')
  ])
})

it.each(['127.0.0.1', 'localhost'])('names the command to start an exporter if nothing listens at %s', async host => {
  const url = `http://${host}:${await freePort()}`
  expect(await memwatch(['top', '--url', url])).toMatchObject({
    code: 2,
    stderr: `memwatch: --url: no exporter answers at ${url}: connection refused; start one ` +
      'with memwatch exporter, or name its address with --url or MEMWATCH_URL\n'
  })
})
