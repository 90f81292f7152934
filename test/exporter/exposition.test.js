'use strict'

const { prometheusContentType, openMetricsContentType } = require('prom-client')
const { formats, formatLabels, Family } = require('../../exporter/catalog/exposition')
const { promClientText } = require('../support/prom-client-text')

const FORMATS = Object.entries(formats)
const HOSTILE = [
  '', 'plain', '"', '\\', '\n', '\\n', '\\"', '"\n\\', 'a"b"c\\\\d\n\ne', 'ends with \\',
  '\r\n\t\0',
  '} 1\nforged{target="x"} 2', '# EOF', 'é€😀', '\u2028', '\uD800', '{,=}', '$&$1'
]
const VALUES = [
  0, -0, 1, -1, 0.1, 1 / 3, 1e-7, 123456789012345680000, 1e21, 2 ** 53, Number.MAX_VALUE,
  Number.MIN_VALUE, Infinity, -Infinity
]
const BUCKETS = { bounds: [0.001, 0.01, 0.5, 1, 10], exposed: [0.001, 0.5, 1] }
/** @type {Record<string, [row: any, reading: any]>} */
const METRICS = {
  'a gauge of one number': [{ type: 'gauge' }, 42],
  'a gauge without a value': [{ type: 'gauge' }, undefined],
  'a gauge without samples': [{ type: 'gauge' }, []],
  'samples without labels': [{ type: 'gauge' }, [{ value: 1 }]],
  'samples with empty labels': [{ type: 'gauge' }, [{ labels: {}, value: 1 }]],
  'a counter': [{ type: 'counter' }, 7],
  'a counter whose name ends in _total': [
    { type: 'counter', name: 'x_total' },
    [{ labels: { by: 'a' }, value: 7 }]
  ],
  'a gauge whose name ends in _total': [{ type: 'gauge', name: 'x_total' }, 7],
  'help with a line break and backslashes': [{ type: 'gauge', help: 'a\\b\nc "d" \\n' }, 1],
  'labels that are numbers': [{ type: 'gauge' }, [{ labels: { pid: 4711, share: 0.5 }, value: 1 }]],
  'hostile labels': [
    { type: 'gauge' },
    HOSTILE.map((text, i) => ({ labels: { text, other: HOSTILE.at(-i - 1) }, value: i }))
  ],
  values: [{ type: 'gauge' }, VALUES.map((value, i) => ({ labels: { i: String(i) }, value }))],
  'a histogram': [{ type: 'histogram', histogram: BUCKETS }, [
    { labels: { kind: 'a' }, sum: 1.5, counts: [1, 2, 3, 4, 5, 6] },
    { labels: { kind: 'b"\\\n' }, sum: 0, counts: [0, 0, 0, 0, 0, 0] }
  ]],
  'a histogram without labels': [
    { type: 'histogram', histogram: BUCKETS },
    [{ labels: {}, sum: 9, counts: [0, 0, 0, 0, 0, 9] }]
  ],
  'a histogram with all bounds': [
    { type: 'histogram', histogram: { ...BUCKETS, exposed: BUCKETS.bounds } },
    [{ labels: {}, sum: 9, counts: [1, 1, 1, 1, 1, 1] }]
  ]
}

describe.each(FORMATS)('in the format %s', (_, format) => {
  it.each(Object.entries(METRICS))('%s: has the same text as prom-client', async (_, [changes, reading]) => {
    const row = { name: 'x', help: 'Some help.', ...changes }
    const family = new Family(row, format)
    /** @type {Record<string, string>[]} */
    const ofTarget = [{}, { target: 'app "1"\n\\', thread: 'main' }]
    for (const shared of ofTarget) {
      const lines = family.lines(reading, formatLabels(shared))
      const text = (lines && family.head + lines) + format.end
      const metrics = [{ row, readings: [{ reading, shared }] }]
      const expected = await promClientText(metrics, format.isOpenMetrics)
      // Without any family prom-client prints an empty line.
      expect(text).toBe(lines ? expected : expected.replace(/^\n/, ''))
    }
  })
})

it('NaN is spelt as in Go', () => {
  const family = new Family({ name: 'x', type: 'gauge', help: '' }, formats.prometheus)
  expect(family.lines(NaN)).toBe('x NaN\n')
})

it('both formats have the content type of prom-client', () => {
  expect(formats.prometheus.contentType).toBe(prometheusContentType)
  expect(formats.openMetrics.contentType).toBe(openMetricsContentType)
})
