'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { diagnoses } = require('../../engine/diagnoses')
const { figures, signals } = require('../../engine/signals')
const { tracks, trackNames } = require('../../engine/history/tracks')
const { targetMetrics } = require('../../exporter/catalog/target-metrics')
const { compatMetrics } = require('../../exporter/catalog/compat-metrics')
const { exporterMetrics } = require('../../exporter/catalog/exporter-metrics')
const { fields, GC_PAUSE_BOUNDS_SECONDS } = require('@memwatch/agent/protocol/frame')
const { FIELD_SOURCES } = require('@memwatch/engine/decode/field-sources')
const { apps } = require('@memwatch/lab')

const { charts, partGroups } = require('../../scripts/page-charts')
const { parts } = require('../../engine/memory/parts')
const { problems } = require('../../exporter/expose/problems')
const ROOT = path.join(__dirname, '../..')
const filesIn = folder =>
  fs
    .readdirSync(path.join(ROOT, folder))
    .filter(name => name.endsWith('.js'))
    .map(name => name.replace('.js', ''))

it('each diagnosis is a listed file, and files with its parts begin with its name', () => {
  const shared = [
    'index',
    'define-diagnosis',
    'evidence',
    'filling',
    'judge-hours',
    'lasting-growth',
    'severity',
    'waiters'
  ]
  const ids = diagnoses.map(({ id }) => id)
  expect(
    filesIn('engine/diagnoses')
      .filter(name => !shared.includes(name) && !ids.some(id => name.startsWith(`${id}-`)))
      .sort()
  ).toEqual(ids.toSorted())
})

it('each part of the exporter is a file, and each file is listed', () => {
  const { parts } = require('../../exporter/parts')
  const shared = ['index', 'guarded-emitter', 'lifecycle']
  const names = parts.map(Part => new Part().name.replaceAll(' ', '-'))
  expect(
    filesIn('exporter/parts')
      .filter(name => !shared.includes(name))
      .sort()
  ).toEqual(names.sort())
})

it('each field of a frame is read by exactly one collector of the agent', () => {
  const { collectors } = require('../../agent/collect')
  const { gc, noOwnGc } = require('../../agent/collect/gc')
  const { startGcs, stopGcs } = require('../../agent/collect/gc-start')
  const run = (/** @type {any} */ _, /** @type {any} */ work) => work
  const started = startGcs(false)
  try {
    const options = { frameMs: 1000, guarded: run, metered: run, majors: () => 0, ownGc: noOwnGc() }
    const access = /** @type {any} */ ({})
    const all = [gc(started, run), ...collectors({ ...options, isMainThread: true, access })]
    const read = all.flatMap(collector => collector?.fields ?? [])
    // These fields are added by the agent itself.
    const own = ['agentErrors', 'framesDropped', 'collectSeconds']
    expect([...read, ...own].sort()).toEqual(Object.keys(fields).sort())
  } finally {
    stopGcs(started)
  }
})

it('each diagnosis has a runbook, an app that causes it, and known symptoms', () => {
  for (const { id, runbook, explains, opportunity = false } of diagnoses) {
    expect(runbook === undefined).toBe(opportunity)
    if (runbook) {
      expect(fs.existsSync(path.join(ROOT, 'alerts/runbooks', `${runbook}.md`))).toBe(true)
    }
    expect(apps.some(app => (opportunity ? app.opportunity : app.diagnosis) === id)).toBe(true)
    for (const symptom of explains) expect(diagnoses.map(({ id }) => id)).toContain(symptom)
  }
})

it('each signal is read by a diagnosis, explains a missing signal, or is a metric', () => {
  /** @type {Set<string>} */
  const read = new Set(diagnoses.flatMap(({ requires, uses }) => [...requires, ...uses]))
  const source = ['exporter/catalog/target-metrics.js', 'cli/watch/progress.js', 'engine/verdicts/judge.js']
    .map(name => fs.readFileSync(path.join(ROOT, name), 'utf8'))
    .join()
  expect(
    Object.keys(signals).filter(name => !read.has(name) && !source.includes(`'${name}'`))
  ).toEqual([])
})

it('each track is read by a signal or explains a death, because history costs memory', () => {
  const source = ['engine/signals', 'engine/memory', 'exporter/deaths']
    .flatMap(folder =>
      filesIn(folder).map(name => fs.readFileSync(path.join(ROOT, folder, `${name}.js`), 'utf8'))
    )
    .join()
  expect(trackNames.filter(name => !source.includes(`'${name}'`))).toEqual([])
})

it('tracks whose growth is judged over hours are stored for hours', () => {
  const source = filesIn('engine/signals')
    .map(name => fs.readFileSync(path.join(ROOT, 'engine/signals', `${name}.js`), 'utf8'))
    .join()
  const grown = [...source.matchAll(/(?:growthOf\(window, |acrossMajors\()'(\w+)'/g)].map(
    ([, name]) => name
  )
  expect(grown.length).toBeGreaterThan(5)
  expect([...grown, 'liveHeapBytes', 'liveHeapMajors'].filter(name => !tracks[name].long)).toEqual(
    []
  )
})

describe('the charts of the page', () => {
  /** @type {readonly string[]} */
  const known = trackNames

  it('draw existing tracks, and read no tracks that they do not request', () => {
    expect(
      charts.flatMap(({ tracks }) => tracks).filter(name => !known.includes(name))
    ).toEqual([])
    for (const { tracks: own, draws, evidence } of charts) {
      const read = new Set()
      const row = {
        last: name => {
          read.add(name)
          return 1
        },
        max: name => {
          read.add(name)
          return 1
        },
        rate: name => {
          read.add(name)
          return 1
        }
      }
      for (const { read: value } of draws) value(row)
      for (const style of Object.values(evidence)) if ('read' in style) style.read?.(row)
      expect(
        [...read, ...Object.values(evidence).flatMap(style => 'track' in style ? style.track : [])].filter(
          name => !own.includes(name)
        )
      ).toEqual([])
    }
  })
  it('show the evidence of every diagnosis in one place each', () => {
    const shown = charts.flatMap(({ evidence }) => Object.keys(evidence))
    const told = [
      ...filesIn('engine/diagnoses')
        .map(name => fs.readFileSync(path.join(ROOT, 'engine/diagnoses', `${name}.js`), 'utf8'))
        .join()
        .matchAll(/(?:evidence\(\s*|^ {2}(?:rise|score|late|growth): )'(\w+)'/gm)
    ].map(([, name]) => name)
    expect(told.length).toBeGreaterThan(40)
    expect(
      [
        ...new Set([
          ...told,
          ...Object.keys(figures).filter(name =>
            /^(sockets|timers|watchers|children|fileDescriptors)(PerSecond|Rise|SteadinessRatio)$/.test(
              name
            )
          )
        ])
      ].filter(name => !shown.includes(name))
    ).toEqual([])
    expect(shown.filter((name, i) => !figures[name] || shown.indexOf(name) !== i)).toEqual([])
  })
  it('show each part of memory in one segment of the RSS bar, which has charts', () => {
    const shown = partGroups.flatMap(({ parts: names }) => names)
    expect(shown.toSorted()).toEqual(Object.keys(parts).toSorted())
    const ids = partGroups.map(({ id }) => id)
    for (const { parts: about } of charts) expect(ids).toEqual(expect.arrayContaining(about))
    expect(ids.filter(id => !charts.some(({ parts: about }) => about.includes(id)))).toEqual([])
  })
  it('have colours that the page defines', () => {
    const css = fs.readFileSync(path.join(ROOT, 'exporter/page/page.css'), 'utf8')
    expect(
      charts
        .flatMap(({ draws }) => draws)
        .filter(({ colour }) => !css.includes(`${colour}:`))
        .map(({ label }) => label)
    ).toEqual([])
  })
})

it('every error of the API is in the table, and used', () => {
  const source = ['exporter/expose', 'exporter/commands', 'agent', 'agent/capture']
    .flatMap(folder =>
      filesIn(folder)
        .filter(name => name !== 'problems')
        .map(name => fs.readFileSync(path.join(ROOT, folder, `${name}.js`), 'utf8'))
    )
    .join()
  const used = [
    ...source.matchAll(/refuse\(reply(?:\.header\([^)]*\))?, '(\w+)'/g),
    ...source.matchAll(/new CommandError\('(\w+)'/g),
    ...source.matchAll(/new CaptureError\('(\w+)'/g),
    ...source.matchAll(/reason: '(\w+)'/g)
  ].map(([, code]) => code)
  expect(used.filter(code => !problems[code])).toEqual([])
  expect(
    Object.keys(problems).filter(
      code => !source.includes(`'${code}'`) && !source.includes(`${code}:`)
    )
  ).toEqual([])
})

it('agent and exporter have the same captures and time limits', () => {
  const limits = kinds =>
    Object.fromEntries(Object.entries(kinds).map(([name, { mostSeconds }]) => [name, mostSeconds]))
  expect(limits(require('../../exporter/captures/kinds').kinds)).toEqual(
    limits(require('../../agent/capture').kinds)
  )
})

it('the package of the agent contains all of its folders', () => {
  const { files } = require('../../agent/package.json')
  const folders = fs
    .readdirSync(path.join(ROOT, 'agent'), { withFileTypes: true })
    .filter(entry => entry.isDirectory() && entry.name !== 'node_modules')
    .map(({ name }) => name)
  expect(files).toEqual(expect.arrayContaining(folders))
})

it('each command is a file, and each file is a command or part of one', () => {
  const { program } = require('../../cli/memwatch')
  expect(program.commands.map(command => command.name()).sort()).toEqual([
    'attach',
    'audit',
    'capture',
    'compare',
    'completion',
    'detach',
    'diagnose',
    'doctor',
    'exporter',
    'fix',
    'fleet',
    'gate',
    'install-agent',
    'last-death',
    'mcp',
    'plan',
    'retainers',
    'right-size',
    'run',
    'simulate',
    'top',
    'triage',
    'trim',
    'try'
  ])
  for (const command of program.commands) expect(filesIn('cli')).toContain(command.name())
})

describe('metric names', () => {
  const own = [...targetMetrics, ...exporterMetrics]
  it('are unique', () => {
    const names = [...own, ...compatMetrics].map(({ name }) => name)
    expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([])
  })
  it.each(own.map(({ name, type, help }) => [name, type, help]))(
    '%s is in base units and has a help text',
    (name, type, help) => {
      expect(name).toMatch(/^memwatch_[a-z0-9_]+$/)
      expect(name.endsWith('_total')).toBe(type === 'counter')
      expect(name).not.toMatch(/_(ms|milliseconds|kb|mb|percent)(_|$)/)
      expect(help).toMatch(/\.$/)
    }
  )
  const histograms = [...targetMetrics, ...compatMetrics].flatMap(({ name, histogram }) =>
    histogram ? [{ name, ...histogram }] : [])
  it.each(histograms)('$name has bounds of the frames, in their order', ({ bounds, exposed }) => {
    expect(exposed.length).toBeGreaterThan(0)
    expect(bounds.filter(bound => exposed.includes(bound))).toEqual(exposed)
  })
  it("prom-client's GC buckets are also buckets of frames, so nothing is interpolated", () => {
    for (const bound of [0.001, 0.01, 0.1, 1, 2, 5]) {
      expect(GC_PAUSE_BOUNDS_SECONDS).toContain(bound)
    }
  })
})

it('each field of the wire contract names its source', () => {
  expect(Object.keys(FIELD_SOURCES)).toEqual(Object.keys(fields))
  for (const [name, { unit }] of Object.entries(fields)) {
    expect(FIELD_SOURCES[/** @type {keyof typeof fields} */ (name)]).not.toBe('')
    if (unit === 'bytes' && name !== 'spaces') expect(name).toMatch(/Bytes$/)
  }
})
