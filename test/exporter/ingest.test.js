'use strict'

const { LineSplitter } = require('../../engine/decode/lines')
const { decode } = require('../../engine/decode/decode')
const { parseAddress, parseHostPort, formatAddress } = require('../../exporter/ingest/address')
const fs = require('node:fs')
const path = require('node:path')
const { isDeepStrictEqual } = require('node:util')
const { gunzipSync } = require('node:zlib')
const { check } = require('../../engine/decode/decode')
const { MOST_NUMBER } = require('../../engine/decode/rebuild')
const { isPlainText, plainText } = require('@memwatch/agent/protocol/text-rules')
const { plainTexts } = require('../../engine/decode/plain-texts')
const { fields } = require('../../agent/protocol/frame')
const { fuzzer } = require('../../bench/fuzz-input')
const { hello, frame, line, gcRow } = require('../support/frames')

/**
 * Decodes an accepted message.
 * @param {object} message
 * @returns {any} of whichever type
 */
function messageOf (message) {
  const answer = decode(line(message))
  if (!answer.ok) throw new Error(answer.reason)
  return answer.message
}

describe('LineSplitter', () => {
  const run = (chunks, maxBytes = 10) => {
    const lines = []
    let tooLong = 0
    const splitter = new LineSplitter({ maxBytes })
    for (const chunk of chunks) {
      splitter.push(
        Buffer.from(chunk),
        text => { lines.push(text) },
        () => { tooLong++ }
      )
    }
    return { lines, tooLong, pending: splitter.pendingBytes }
  }
  it.each([
    ['splits two lines in one chunk', ['a\nb\n'], ['a', 'b'], 0],
    ['joins one line from three chunks', ['a', 'b', 'c\n'], ['abc'], 0],
    [
      'joins a character cut in two',
      [Buffer.from('é\n').subarray(0, 1), Buffer.from('é\n').subarray(1)],
      ['é'],
      0
    ],
    ['empty lines', ['\n\na\n'], ['a'], 0],
    ['the longest accepted line', ['0123456789\n'], ['0123456789'], 0],
    ['the shortest rejected line', ['0123456789X\nb\n'], ['b'], 1],
    [
      'counts a long line in many chunks once',
      ['01234567', '01234567', '01234567', '\nb\n'],
      ['b'],
      1
    ]
  ])('%s', (_, chunks, lines, tooLong) => {
    expect(run(chunks)).toMatchObject({ lines, tooLong })
  })
  it('holds at most the longest line of a stream without newlines', () => {
    const { pending, tooLong } = run(Array.from({ length: 1000 }, () => 'x'.repeat(7)))
    expect(pending).toBeLessThanOrEqual(10)
    expect(tooLong).toBe(1)
  })
})

it('an unfinished line received byte by byte is held in one buffer', () => {
  const splitter = new LineSplitter({ maxBytes: 100_000 })
  for (let i = 0; i < 5000; i++) splitter.push(Buffer.from('x'), () => {}, () => {})
  expect([splitter.pendingBytes, splitter.heldBytes]).toEqual([5000, 8192])
  const lines = []
  splitter.push(Buffer.from('y\n'), text => { lines.push(text) }, () => {})
  expect([lines, splitter.heldBytes]).toEqual([['x'.repeat(5000) + 'y'], 0])
})

describe('decode', () => {
  it('accepts a hello, a frame and a bye', () => {
    for (const message of [
      hello(),
      frame(),
      { type: 'bye', sequence: 3, atUnixMs: 1, exitCode: 0 }
    ]) {
      expect(decode(line(message))).toMatchObject({ ok: true })
    }
  })
  it('ignores unknown fields of a newer agent', () => {
    expect(
      decode(line(frame({ values: { rssBytes: 1, somethingNew: { any: 'shape' } } })))
    ).toMatchObject({ ok: true })
  })
  it('keeps known fields of a pod', () => {
    const pod = { uid: 'u', name: 'shop-5d4c', namespace: 'default', container: 'app' }
    expect(decode(line(hello({ pod: { ...pod, somethingNew: 1 } })))).toMatchObject({
      ok: true,
      message: { pod }
    })
    expect(messageOf(hello({ pod: { ...pod, somethingNew: 1 } })).pod).toEqual(pod)
    expect(messageOf(hello())).not.toHaveProperty('pod')
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
    [
      'invalid_field',
      '{"v":1,"type":"frame","sequence":1,"atUnixMs":1,"uptimeSeconds":1,"values":{"resources":{"__proto__":1}}}'
    ],
    [
      'invalid_field',
      line(
        frame({
          values: {
            resources: Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`t${i}`, 1]))
          }
        })
      )
    ]
  ])('rejects as %s: %s', (reason, text) => {
    expect(decode(text)).toEqual({ ok: false, reason })
  })
})

describe('the decoder', () => {
  const ESCAPE = '\u001b]0;mine\u0007'
  /** Characters that control a terminal, reverse the reading order, or are not text. */
  const NOT_PLAIN = [
    ESCAPE,
    '\u001b[2J',
    '\u0000',
    '\n',
    '\t',
    '\u007f',
    '\u0085',
    '\u009b',
    '\u2028',
    '\u2029',
    '\u061c',
    '\u200e',
    '\u200f',
    '\u202a',
    '\u202e',
    '\u2066',
    '\u2069',
    '\ud800',
    '\udc00x'
  ]
  const PLAIN = [
    'api',
    'Größe 1',
    '日本',
    '💥',
    'a"b\\c',
    '\ufffd',
    '\u00a0',
    '\u200d',
    '\u2027',
    '\u202f',
    '\u2065',
    '\u206a'
  ]
  const decoded = message => decode(line(message))
  const reasonOf = message => {
    const answer = decoded(message)
    return answer.ok ? 'taken' : answer.reason
  }

  it.each(NOT_PLAIN)('refuses a text with %j', text => {
    expect([
      isPlainText(text),
      isPlainText(plainText(text)),
      plainText(`a${text}`).startsWith('a')
    ]).toEqual([false, true, true])
    for (const changes of [
      { name: `a${text}` },
      { execArgv: [`--title=${text}`] },
      { nodeOptions: [text] },
      { mallocEnv: { MALLOC_CONF: text } },
      { allocatorPath: text }
    ]) {
      expect(reasonOf(hello(changes))).toBe('invalid_hello')
    }
    expect(reasonOf({ type: 'answer', id: '1', ok: false, message: text })).toBe('invalid_answer')
  })
  it.each(PLAIN)('accepts %j', text => {
    expect(plainText(text)).toBe(text)
    expect(messageOf(hello({ name: text, execArgv: [text] }))).toMatchObject({
      name: text,
      execArgv: [text]
    })
  })
  it('makes texts of file readers plain', () => {
    expect(plainTexts({ [`a${ESCAPE}`]: ['b\u202e', 1, null, { c: '\ud800' }] })).toEqual({
      'a\ufffd]0;mine\ufffd': ['b\ufffd', 1, null, { c: '\ufffd' }]
    })
  })

  const MANIFEST = 'a\n---\n{apiVersion: v1}\n---'
  it.each([
    [
      'host',
      ['web-1', 'DESKTOP-AB12', 'my_host', 'a.example.org', 'x'.repeat(253)],
      ['', '-x', '.x', 'a b', 'a/b', '$(id)', 'größe', 'x'.repeat(254)]
    ],
    [
      'node',
      ['20.20.2', '26.0.0-nightly20260101abc', '18'],
      ['', '20 ', '20;id', '-1', 'x'.repeat(65)]
    ],
    ['v8', ['11.3.244.8-node.38', '12.4.254.20-electron.0'], ['', '$(id)']],
    ['agent', ['0.1.0', '1.0.0-rc.1+build'], ['', 'a b']],
    ['platform', ['linux', 'win32'], ['', 'Linux', '../linux']],
    ['arch', ['x64', 'arm64'], ['', 'x 64']],
    ['libc', ['glibc', 'musl', 'other', 'unknown'], ['', '__proto__', 'glibc"']],
    ['allocator', ['jemalloc', 'unknown'], ['', '__proto__']],
    [
      'allowedFlags',
      [['--tls-min-v1.3', '-r']],
      [['--x=$(id)'], ['x'], ['--a b'], ['--' + 'x'.repeat(130)]]
    ],
    ['commands', [['look', 'trim', 'capture']], [['rm -rf'], Array(17).fill('look')]],
    [
      'execArgv',
      [Array(1000).fill('--x'), Array(4).fill('x'.repeat(4096))],
      [Array(1001).fill(''), ['x'.repeat(4097)], Array(5).fill('x'.repeat(4096))]
    ],
    [
      'mallocEnv',
      [{ MALLOC_ARENA_MAX: '2' }],
      [
        { 'a b': '1' },
        { ['x'.repeat(65)]: '1' },
        { A: 1 },
        { A: 'x'.repeat(4097) },
        Object.fromEntries(Array.from({ length: 5 }, (_, i) => [`A${i}`, 'x'.repeat(4096)]))
      ]
    ],
    ['pid', [1, 2 ** 32], [1.5, -1, 2 ** 32 + 1, '1']],
    ['threadId', [0, 2 ** 53], [0.5, -1]],
    ['startedAtUnixMs', [253_402_300_799_999], [253_402_300_800_000, -1]],
    ['hostMemoryBytes', [2 ** 53], [2 ** 53 + 2, 1e308]],
    [
      'pod.uid',
      ['0d4b1c3e-0000-4000-8000-000000000000', '0123456789abcdef0123456789abcdef'],
      ['', 'a/b', MANIFEST, 'x'.repeat(65)]
    ],
    [
      'pod.name',
      ['shop-5d4c', 'a.b-1.c', 'x'.repeat(253)],
      ['', 'Shop', 'a_b', '-a', 'a.', 'a..b', MANIFEST, 'x'.repeat(254)]
    ],
    ['pod.namespace', ['default', 'x'.repeat(63)], ['', 'a.b', 'A', MANIFEST, 'x'.repeat(64)]],
    [
      'pod.container',
      ['app', '1'],
      ['', 'a.b', 'app\n          image: evil', 'app-', 'x'.repeat(64)]
    ]
  ])('%s: the last accepted and the first refused value', (field, taken, refused) => {
    const of = value =>
      field.startsWith('pod.')
        ? hello({ pod: { [field.slice(4)]: value } })
        : hello({ [field]: value })
    expect(taken.map(value => reasonOf(of(value)))).toEqual(taken.map(() => 'taken'))
    expect(refused.map(value => reasonOf(of(value)))).toEqual(refused.map(() => 'invalid_hello'))
  })

  const keys = (length, value) =>
    Object.fromEntries(Array.from({ length }, (_, i) => [`k${i}`, value]))
  it.each([
    ['rssBytes', 2 ** 53, 2 ** 53 + 2],
    ['rssBytes', 0, 1e308],
    ['residentBytes', keys(64, 2 ** 47), { ...keys(63, 2 ** 47), more: 2 ** 47 + 2 }],
    ['allocatorBytes', { a: 2 ** 53 }, { a: 1e308 }],
    [
      'spaces',
      { a: [2 ** 51, 2 ** 51, 2 ** 51, 2 ** 51] },
      { a: [2 ** 51, 2 ** 51, 2 ** 51, 2 ** 51 + 2] }
    ],
    ['gc', { 'minor/ordinary': gcRow(2 ** 50, 1) }, { 'minor/ordinary': gcRow(2 ** 54, 1) }],
    ['eventLoopDelay', [1, 1, 1, Array(13).fill(2 ** 49)], [1, 1, 1, Array(13).fill(2 ** 50)]]
  ])('%s: the largest number or sum, and the next one', (field, largest, next) => {
    expect([
      reasonOf(frame({ values: { [field]: largest } })),
      reasonOf(frame({ values: { [field]: next } }))
    ]).toEqual(['taken', 'invalid_field'])
  })
  it('limits a counter beyond it to the largest number', () => {
    expect(messageOf(frame({ values: { heapAllocatedBytes: 1e17 } })).values).toEqual({
      heapAllocatedBytes: MOST_NUMBER
    })
  })
  it.each([
    [{ sequence: 1.5 }],
    [{ sequence: 2 ** 53 + 2 }],
    [{ atUnixMs: 9e15 }],
    [{ uptimeSeconds: 1e15 }]
  ])('refuses a frame with %j', changes => {
    expect(reasonOf(frame(changes))).toBe('invalid_frame')
  })
  it.each([[{ exitCode: 1.5 }], [{ exitCode: 1e300 }], [{ atUnixMs: 9e15 }]])(
    'refuses a bye with %j',
    changes => {
      expect(reasonOf({ type: 'bye', sequence: 1, atUnixMs: 1, exitCode: 0, ...changes })).toBe(
        'invalid_frame'
      )
    }
  )
  it.each([
    ['../x', 'profile'],
    ['1', '../x'],
    ['1', ''],
    ['x'.repeat(65), 'profile']
  ])('refuses a capture with id %j and part %j', (id, part) => {
    expect(reasonOf({ type: 'capture', id, part })).toBe('invalid_capture')
  })
  it('refuses a line with more values than any message before parsing', () => {
    const junk = length =>
      `{"v":1,"type":"frame","sequence":1,"atUnixMs":1,"uptimeSeconds":1,"values":{},"junk":[${'[],'.repeat(length)}[]]}`
    expect(decode(junk(4000))).toMatchObject({ ok: true })
    expect(decode(junk(87_000))).toEqual({ ok: false, reason: 'too_many_values' })
  })
  it('retains nothing of the parsed line', () => {
    const junk = [[], []]
    const parsed = JSON.parse(
      line({
        ...frame({
          values: {
            rssBytes: 1,
            junk,
            resources: { Timeout: 1 },
            spaces: { new_space: [1, 2, 3, 4] },
            gc: { 'minor/ordinary': gcRow(1, 1) },
            eventLoopDelay: [1, 1, 1, Array(13).fill(1)]
          }
        }),
        junk
      })
    )
    const answer = check(parsed)
    /** @type {any} */
    const message = answer.ok && answer.message
    const objects = value =>
      typeof value === 'object' && value !== null
        ? [value, ...Object.values(value).flatMap(objects)]
        : []
    const kept = new Set(objects(message))
    expect(objects(parsed).filter(object => kept.has(object))).toEqual([])
    expect(Object.keys(message).sort()).toEqual(
      ['atUnixMs', 'sequence', 'type', 'uptimeSeconds', 'values']
    )
    expect(Object.keys(message.values)).toEqual(Object.keys(fields))
    const sent = Object.keys(fields).filter(name => message.values[name] !== undefined)
    expect(sent.sort()).toEqual(['eventLoopDelay', 'gc', 'resources', 'rssBytes', 'spaces'])
  })

  const KNOWN = new Set([
    'type',
    'sequence',
    'atUnixMs',
    'uptimeSeconds',
    'values',
    'exitCode',
    'id',
    'ok',
    'reason',
    'message',
    'parts',
    'part',
    'predictedBytes',
    'headroomBytes',
    'blockedSeconds',
    'rssBeforeBytes',
    'rssAfterBytes',
    'agent',
    'pid',
    'threadId',
    'startedAtUnixMs',
    'name',
    'intervalSeconds',
    'node',
    'v8',
    'platform',
    'arch',
    'libc',
    'allocator',
    'pointerCompression',
    'execArgv',
    'nodeOptions',
    'allowedFlags',
    'mallocEnv',
    'host',
    'pod',
    'cgroup',
    'allocatorPath',
    'agentFolder',
    'resourceLimits',
    'hostMemoryBytes',
    'startTimeTicks',
    'constrainedBytes',
    'cores',
    'allocatorAccess',
    'gcCounter',
    'gcHooksMissing',
    'commands'
  ])
  it.each([1, 2, 3])(
    'accepts only known, plain, bounded values that decode to themselves: seed %i',
    seed => {
      const fuzz = fuzzer(seed)
      let taken = 0
      /** Throws if a value contains a text that is not plain, or is too large. */
      const inspect = value => {
        if (typeof value === 'number' && !(Math.abs(value) <= MOST_NUMBER)) {
          throw new Error(`${value}`)
        }
        if (typeof value === 'string' && !isPlainText(value)) throw new Error(JSON.stringify(value))
        if (typeof value === 'object' && value !== null) {
          for (const [key, item] of Object.entries(value)) {
            inspect(key)
            inspect(item)
          }
        }
      }
      for (let i = 0; i < 5000; i++) {
        const decoded = decode(fuzz.line(1).toString('utf8'))
        if (!decoded.ok) continue
        taken++
        /** @type {any} */
        const message = decoded.message
        inspect(message)
        const unknown = [
          ...Object.keys(message).filter(key => !KNOWN.has(key)),
          ...Object.keys(message.values ?? {}).filter(key => !Object.hasOwn(fields, key))
        ]
        if (unknown.length > 0) throw new Error(unknown.join())
        if (!isDeepStrictEqual(decode(line(message)), decoded)) throw new Error(line(message))
      }
      expect(taken).toBeGreaterThan(500)
    }
  )

  it('accepts recordings of real agents completely', () => {
    const folder = path.join(__dirname, '../recordings')
    const files = fs.readdirSync(folder).filter((name, i) => name.endsWith('.gz') && i % 10 === 0)
    let lines = 0
    for (const file of files) {
      for (const text of gunzipSync(fs.readFileSync(path.join(folder, file)))
        .toString()
        .split('\n')
        .slice(0, 40)) {
        const { line } = text === '' ? {} : JSON.parse(text)
        if (line && ['hello', 'frame', 'bye'].includes(line.type)) {
          const { v, ...said } = line
          const taken = JSON.parse(JSON.stringify(check(line)))
          if (!isDeepStrictEqual(taken, { ok: true, message: said })) {
            throw new Error(`${file}: ${text}`)
          }
          lines++
        }
      }
    }
    expect(lines).toBeGreaterThan(200)
  })
})

describe('addresses', () => {
  it.each(['/run/memwatch/exporter.sock', 'tcp://127.0.0.1:9000', 'tcp://[::1]:9000'])(
    '%s is formatted and parsed back to itself',
    text => {
      expect(formatAddress(parseAddress(text))).toBe(text)
    }
  )
  it.each(['127.0.0.1', 'tcp', ':80', 'host:65536', 'host:-1', 'a b:1'])(
    '%s is refused, as it is not HOST:PORT',
    text => {
      expect(() => parseHostPort(text)).toThrow('expected HOST:PORT')
    }
  )
  it('a path too long for the kernel is refused, not truncated', () => {
    expect(() => parseAddress('/' + 'x'.repeat(107))).toThrow('longer than 107 bytes')
    expect(() => parseAddress('/' + 'x'.repeat(106))).not.toThrow()
  })
})
