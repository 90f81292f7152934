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

it('each diagnosis is a file of its own name, with its parts beside it, and each such file is listed', () => {
  const shared = [
    'index',
    'define-diagnosis',
    'evidence',
    'filling',
    'judge-hours',
    'lasting-growth',
    'severity'
  ]
  const ids = diagnoses.map(({ id }) => id)
  expect(
    filesIn('engine/diagnoses')
      .filter(name => !shared.includes(name) && !ids.some(id => name.startsWith(`${id}-`)))
      .sort()
  ).toEqual(ids.toSorted())
})

it('each part of the exporter is a file, and each such file is listed', () => {
  const { parts } = require('../../exporter/parts')
  const shared = ['index', 'guarded-emitter', 'lifecycle']
  const names = parts.map(Part => new Part().name.replaceAll(' ', '-'))
  expect(
    filesIn('exporter/parts')
      .filter(name => !shared.includes(name))
      .sort()
  ).toEqual(names.sort())
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

it('each signal is read by a diagnosis, explains a missing one, or is shown as a metric', () => {
  /** @type {Set<string>} */
  const read = new Set(diagnoses.flatMap(({ requires, uses }) => [...requires, ...uses]))
  const source = ['exporter/catalog/target-metrics.js', 'cli/progress.js', 'engine/verdicts/judge.js']
    .map(name => fs.readFileSync(path.join(ROOT, name), 'utf8'))
    .join()
  expect(
    Object.keys(signals).filter(name => !read.has(name) && !source.includes(`'${name}'`))
  ).toEqual([])
})

it('each track is read by a signal or tells of a death: history costs memory in every target', () => {
  const source = ['engine/signals', 'engine/memory', 'exporter/deaths']
    .flatMap(folder =>
      filesIn(folder).map(name => fs.readFileSync(path.join(ROOT, folder, `${name}.js`), 'utf8'))
    )
    .join()
  expect(trackNames.filter(name => !source.includes(`'${name}'`))).toEqual([])
})

it('a track whose growth is looked for over hours is kept that long', () => {
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

  it('draw tracks that there are, and read none that they do not ask for', () => {
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
  it('show the evidence of every diagnosis, each in one place', () => {
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
  it('show each part of memory in one part of the bar of RSS, whose charts there are', () => {
    const shown = partGroups.flatMap(({ parts: names }) => names)
    expect(shown.toSorted()).toEqual(Object.keys(parts).toSorted())
    const ids = partGroups.map(({ id }) => id)
    for (const { parts: about } of charts) expect(ids).toEqual(expect.arrayContaining(about))
    expect(ids.filter(id => !charts.some(({ parts: about }) => about.includes(id)))).toEqual([])
  })
  it('have colours that the page knows', () => {
    const css = fs.readFileSync(path.join(ROOT, 'exporter/page/page.css'), 'utf8')
    expect(
      charts
        .flatMap(({ draws }) => draws)
        .filter(({ colour }) => !css.includes(`${colour}:`))
        .map(({ label }) => label)
    ).toEqual([])
  })
})

it('every problem that the API may have is in the table, and used', () => {
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

it('agent and exporter know the same captures, and how long each may take', () => {
  const limits = kinds =>
    Object.fromEntries(Object.entries(kinds).map(([name, { mostSeconds }]) => [name, mostSeconds]))
  expect(limits(require('../../exporter/captures/kinds').kinds)).toEqual(
    limits(require('../../agent/capture').kinds)
  )
})

it('the package of the agent holds all of its folders', () => {
  const { files } = require('../../agent/package.json')
  const folders = fs
    .readdirSync(path.join(ROOT, 'agent'), { withFileTypes: true })
    .filter(entry => entry.isDirectory() && entry.name !== 'node_modules')
    .map(({ name }) => name)
  expect(files).toEqual(expect.arrayContaining(folders))
})

it('each command of the command line is a file, and each file a command or a part of one', () => {
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
    'install-agent',
    'last-death',
    'plan',
    'retainers',
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
    '%s is in base units and says what it is',
    (name, type, help) => {
      expect(name).toMatch(/^memwatch_[a-z0-9_]+$/)
      expect(name.endsWith('_total')).toBe(type === 'counter')
      expect(name).not.toMatch(/_(ms|milliseconds|kb|mb|percent)(_|$)/)
      expect(help).toMatch(/\.$/)
    }
  )
  const histograms = [...targetMetrics, ...compatMetrics].flatMap(({ name, histogram }) =>
    histogram ? [{ name, ...histogram }] : [])
  it.each(histograms)('$name shows bounds of the frames, in their order', ({ bounds, exposed }) => {
    expect(exposed.length).toBeGreaterThan(0)
    expect(bounds.filter(bound => exposed.includes(bound))).toEqual(exposed)
  })
  it("prom-client's GC buckets are bounds of the frames, so nothing is interpolated", () => {
    for (const bound of [0.001, 0.01, 0.1, 1, 2, 5]) {
      expect(GC_PAUSE_BOUNDS_SECONDS).toContain(bound)
    }
  })
})

it('each field of the wire contract says its source', () => {
  for (const [name, { source, unit }] of Object.entries(fields)) {
    expect(source).not.toBe('')
    if (unit === 'bytes' && name !== 'spaces') expect(name).toMatch(/Bytes$/)
  }
})
