'use strict'

const { LineSplitter } = require('../../exporter/ingest/lines')
const { decode } = require('../../exporter/ingest/decode')
const { parseAddress, parseHostPort, formatAddress } = require('../../exporter/ingest/address')
const { hello, frame, line, gcRow } = require('../support/frames')

describe('LineSplitter', () => {
  const run = (chunks, maxBytes = 10) => {
    const lines = []
    let tooLong = 0
    const splitter = new LineSplitter({ maxBytes })
    for (const chunk of chunks) splitter.push(Buffer.from(chunk), text => lines.push(text), () => tooLong++)
    return { lines, tooLong, pending: splitter.pendingBytes }
  }
  it.each([
    ['two lines in one chunk', ['a\nb\n'], ['a', 'b'], 0],
    ['one line in three chunks', ['a', 'b', 'c\n'], ['abc'], 0],
    ['a character cut in two', [Buffer.from('é\n').subarray(0, 1), Buffer.from('é\n').subarray(1)], ['é'], 0],
    ['empty lines', ['\n\na\n'], ['a'], 0],
    ['the longest accepted line', ['0123456789\n'], ['0123456789'], 0],
    ['the shortest rejected line', ['0123456789X\nb\n'], ['b'], 1],
    ['a long line in many chunks, counted once', ['01234567', '01234567', '01234567', '\nb\n'], ['b'], 1]
  ])('%s', (_, chunks, lines, tooLong) => {
    expect(run(chunks)).toMatchObject({ lines, tooLong })
  })
  it('holds no more than the longest line of a stream without newlines', () => {
    const { pending, tooLong } = run(Array.from({ length: 1000 }, () => 'x'.repeat(7)))
    expect(pending).toBeLessThanOrEqual(10)
    expect(tooLong).toBe(1)
  })
})

describe('decode', () => {
  it('takes a hello, a frame and a bye', () => {
    for (const message of [hello(), frame(), { type: 'bye', sequence: 3, atUnixMs: 1, exitCode: 0 }]) {
      expect(decode(line(message))).toMatchObject({ ok: true })
    }
  })
  it('ignores fields it does not know: a newer agent', () => {
    expect(decode(line(frame({ values: { rssBytes: 1, somethingNew: { any: 'shape' } } })))).toMatchObject({ ok: true })
  })
  it('keeps of a pod what it knows', () => {
    const pod = { uid: 'u', name: 'shop-5d4c', namespace: 'default', container: 'app' }
    expect(decode(line(hello({ pod: { ...pod, somethingNew: 1 } })))).toMatchObject({ ok: true, message: { pod } })
    expect(decode(line(hello({ pod: { ...pod, somethingNew: 1 } }))).message.pod).toEqual(pod)
    expect(decode(line(hello())).message).not.toHaveProperty('pod')
  })
  it.each([
    ['not_json', '{"v":1,'],
    ['not_json', ''],
    ['not_an_object', '[1]'],
    ['not_an_object', 'null'],
    ['wrong_version', '{"v":2,"type":"frame"}'],
    ['unknown_type', '{"v":1,"type":"__proto__"}'],
    ['invalid_hello', line({ ...hello(), pid: 'one' })],
    ['invalid_hello', line({ ...hello(), name: '' })],
    ['invalid_hello', line({ ...hello(), pod: 'shop' })],
    ['invalid_hello', line({ ...hello(), pod: { uid: 'x'.repeat(254) } })],
    ['invalid_hello', line({ ...hello(), name: 'x'.repeat(129) })],
    ['invalid_frame', line({ ...frame(), sequence: undefined })],
    ['invalid_frame', line({ ...frame(), values: [] })],
    ['invalid_field', line(frame({ values: { rssBytes: '1' } }))],
    ['invalid_field', line(frame({ values: { rssBytes: -1 } }))],
    ['invalid_field', line(frame({ values: { spaces: { new_space: [1, 2, 3] } } }))],
    ['invalid_field', line(frame({ values: { gc: { 'minor/ordinary': [1, 2, 3, [1]] } } }))],
    ['invalid_field', line(frame({ values: { gc: { minor: gcRow(1, 1) } } }))],
    ['invalid_field', '{"v":1,"type":"frame","sequence":1,"atUnixMs":1,"uptimeSeconds":1,"values":{"resources":{"__proto__":1}}}'],
    ['invalid_field', line(frame({ values: { resources: Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`t${i}`, 1])) } }))]
  ])('rejects as %s: %s', (reason, text) => {
    expect(decode(text)).toEqual({ ok: false, reason })
  })
})

describe('addresses', () => {
  it.each(['/run/memwatch/exporter.sock', 'tcp://127.0.0.1:9000', 'tcp://[::1]:9000'])('%s reads back as itself', text => {
    expect(formatAddress(parseAddress(text))).toBe(text)
  })
  it.each(['127.0.0.1', 'tcp', ':80', 'host:65536', 'host:-1', 'a b:1'])('%s is no HOST:PORT', text => {
    expect(() => parseHostPort(text)).toThrow('expected HOST:PORT')
  })
  it('a path too long for the kernel is refused, not truncated', () => {
    expect(() => parseAddress('/' + 'x'.repeat(107))).toThrow('longer than 107 bytes')
    expect(() => parseAddress('/' + 'x'.repeat(106))).not.toThrow()
  })
})
