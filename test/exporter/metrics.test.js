'use strict'

const { text } = require('node:stream/consumers')
const { createMetrics } = require('../../exporter/expose/metrics')
const { Targets } = require('../../exporter/series/targets')
const { evaluate } = require('../../exporter/classify/evaluate')
const { exporterState } = require('../support/exporter-state')
const { hello, frame, gcRow, MIB } = require('../support/frames')

const COUNT = 37

/** More targets than are read at a time, and not alike: only every third collects, only every fifth has a frame. */
function unlikeTargets () {
  const targets = new Targets()
  targets.on('frame', target => evaluate(target))
  for (let i = 0; i < COUNT; i++) {
    const session = targets.open(hello({ name: `app "${i}" é€😀`, pid: 100 + i }))
    if (i % 5 === 4) continue
    for (let n = 1; n <= 5; n++) session.frame(frame({ sequence: n, uptimeSeconds: n, values: { rssBytes: (100 + i) * MIB, ...i % 3 === 0 && { gc: { 'minor/ordinary': gcRow(n, n / 1000) } } } }))
  }
  return targets.all
}

it.each(['', 'application/openmetrics-text'])('the lines of a metric are together, below its type, in the order of the targets: %j', async accept => {
  const targets = unlikeTargets()
  const metrics = createMetrics({ targets: () => targets, state: () => exporterState(), compat: true })
  const { parts, length } = await metrics.text(accept)
  const body = await text(parts())
  expect(length).toBe(Buffer.byteLength(body))
  expect(body.endsWith(accept ? '\n# EOF\n' : '\n')).toBe(true)
  expect(body).not.toMatch(accept ? /\n\n/ : /\n\n\n|\n\n$/)

  const blocks = body.replace(/# EOF\n$/, '').split(/^(?=# HELP )/m)
  const names = blocks.map(block => /^# HELP (\S+) .*\n# TYPE \1 \w+\n/.exec(block)?.[1])
  expect(names).not.toContain(undefined)
  expect(new Set(names).size).toBe(names.length)
  for (const [i, block] of blocks.entries()) {
    const lines = block.trimEnd().split('\n').slice(2)
    expect(lines.length).toBeGreaterThan(0)
    expect(lines.filter(line => !line.startsWith(/** @type {string} */ (names[i])))).toEqual([])
    const order = lines.map(line => /target="app \\"(\d+)\\" é€😀"/.exec(line)?.[1]).filter(Boolean).map(Number)
    expect(order).toEqual([...order].sort((a, b) => a - b))
  }
  const up = blocks.find(block => block.startsWith('# HELP memwatch_target_up '))?.match(/^memwatch_target_up/gm)
  expect(up).toHaveLength(targets.filter(target => target.frame).length)
})

it('scrapes in two forms at a time do not mix', async () => {
  const targets = unlikeTargets()
  const metrics = createMetrics({ targets: () => targets, state: () => exporterState(), compat: true, now: () => 1e12 })
  const forms = ['', 'application/openmetrics-text']
  const stable = (/** @type {string} */ body) => body.split('\n').filter(line => line !== '' && !line.includes('memwatch_exporter_')).join('\n')
  const read = async (/** @type {string} */ accept) => stable(await text((await metrics.text(accept)).parts()))
  const alone = [await read(forms[0]), await read(forms[1])]
  expect(await Promise.all(forms.map(read))).toEqual(alone)
  expect(alone[0]).not.toBe(alone[1])
})
