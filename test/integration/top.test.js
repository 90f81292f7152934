'use strict'

const { startExporter, eventually } = require('../support/exporter')
const { freePort } = require('../support/free-port')
const { spawnWatched } = require('../support/agent-collector')
const { memwatch } = require('../support/memwatch')
const { sparkline } = require('../../cli/text/sparkline')
const { terminalText } = require('../../cli/text/terminal')
const { render } = require('../../cli/top')

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

it('memwatch top shows who is ill first, and what is the matter; a narrow terminal cuts it', async () => {
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
      "setInterval(() => require('crypto').pbkdf2Sync('a', 'b', 400_000, 64, 'sha512'), 500)"
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
    const [head, ...rows] = stdout.trimEnd().split('\n')
    expect([code, stderr, head.split(/ {2,}/)]).toEqual([
      0,
      '',
      ['target', 'RSS', 'of limit', 'heap', 'loop', 'RSS, 5 min', 'verdict']
    ])
    expect(rows).toEqual([
      expect.stringMatching(/^blocked .* MiB .* % .* (Suspected|Confirmed): event-loop-blocked: /),
      expect.stringMatching(/^calm .* MiB .* % .*Undecided: /)
    ])
  } finally {
    for (const { child, ended } of apps) {
      child.kill('SIGKILL')
      await ended
    }
    await exporter.stop()
  }
}, 60_000)

it('rows are cut to the width, and coloured by how sure it is', () => {
  // Part of a row that is shown; a headline has more.
  const row = /** @type {Parameters<typeof render>[0][number]} */ (/** @type {unknown} */ ({
    target: {},
    name: 'shop',
    values: { rssBytes: 2 ** 30, containerLimitBytes: 2 ** 31 },
    rss: [1, 2],
    loopRatio: 0.5,
    up: true,
    silence: null,
    headline: {
      state: 'confirmed',
      severity: 'critical',
      diagnosis: 'js-heap-leak',
      text: 'Confirmed: js-heap-leak: It leaks.'
    }
  }))
  const [head, line] = terminalText(render([row], { width: 40 })).split('\n')
  expect([head.length, line.length]).toEqual([40, 40])
  expect(terminalText(render([row], { width: 200 }), { colour: true })).toContain('\u001b[31m')
  expect(render([], { width: 80 })).toEqual([expect.stringContaining('node -r memwatch/agent')])
})

it('an exporter that is not there is said to be', async () => {
  const { code, stderr } = await memwatch(['top', '--url', 'http://127.0.0.1:9'])
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining('no exporter answers at http://127.0.0.1:9')
  ])
})

it.each(['127.0.0.1', 'localhost'])('where nothing listens at %s, it says how to start one', async host => {
  const url = `http://${host}:${await freePort()}`
  expect(await memwatch(['top', '--url', url])).toMatchObject({
    code: 2,
    stderr: `memwatch: --url: no exporter answers at ${url}: connection refused; start one ` +
      'with memwatch exporter, or name its address with --url or MEMWATCH_URL\n'
  })
})
