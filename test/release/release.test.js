'use strict'

const crypto = require('node:crypto')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFileSync } = require('node:child_process')
const { parse } = require('yaml')
const { ARCHIVE } = require('../../scripts/contrib/krew')
const { dashboards } = require('../../scripts/dashboards')
const { findGoTool } = require('../../scripts/go-tools')
const { CHARTS, IMAGE, REPOSITORY, folders, nameOf, version } = require('../../scripts/packages')
const { assembleRelease, outputs } = require('../../scripts/release/assemble')
const { findVersion } = require('../../scripts/release/changelog')
const { releaseAnnotations } = require('../../scripts/release/chart')
const { forGrafanaCom } = require('../../scripts/release/grafana-com')
const { publishCommands } = require('../../scripts/release/publish')
const {
  PLACES, VERSION, findVersionProblems, withVersion
} = require('../../scripts/release/versions')
const { describeWithGoTools } = require('../support/tools')

const ROOT = path.join(__dirname, '../..')
const read = (...names) => fs.readFileSync(path.join(...names), 'utf8')
const sha256 = content => crypto.createHash('sha256').update(content).digest('hex')
const tar = (...args) => execFileSync('tar', args, { encoding: 'utf8' })
const out = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-release-test-'))
const assets = path.join(out, 'assets')

beforeAll(() => {
  assembleRelease(out, { helm: findGoTool('helm') })
})
afterAll(() => fs.rmSync(out, { recursive: true, force: true }))

describe('a dry run of the release', () => {
  it.each(folders)('packs %s with its licence and its README', folder => {
    const archive = publishCommands(assets).find(({ name }) => name === nameOf(folder))?.args[1] ?? ''
    const files = tar('-tzf', archive).split('\n')
    expect(files).toEqual(expect.arrayContaining(['package/LICENSE', 'package/README.md']))
    expect(files.filter(file => /(^|\/)(node_modules|test)\//.test(file))).toEqual([])
    expect(JSON.parse(tar('-xzOf', archive, 'package/package.json'))).toMatchObject({
      name: nameOf(folder),
      version
    })
  })

  it('has a correct checksum of every other file', () => {
    const listed = Object.fromEntries(
      read(assets, 'SHA256SUMS').trim().split('\n').map(line => line.split('  ').reverse())
    )
    const files = fs.readdirSync(assets).filter(name => name !== 'SHA256SUMS')
    expect(Object.keys(listed)).toEqual(files.sort())
    for (const name of files) {
      expect({ [name]: sha256(fs.readFileSync(path.join(assets, name))) })
        .toEqual({ [name]: listed[name] })
    }
  })

  it.each(['memwatch.alerts.yaml', 'memwatch.rules.yaml', 'prom-client.rules.yaml'])(
    'holds alerts/%s',
    name => {
      expect(read(assets, name)).toBe(read(ROOT, 'alerts', name))
    }
  )

  it('has the notes of its version', () => {
    expect(read(out, 'notes.md')).toContain('### Added')
    expect(read(ROOT, 'CHANGELOG.md')).toContain(read(out, 'notes.md').trim())
  })

  it('contains the kubectl plugin, with its checksum in the manifest', () => {
    expect(tar('-tvzf', path.join(assets, ARCHIVE)).trim().split('\n')).toEqual([
      expect.stringMatching(/^-rwxr-xr-x .* kubectl-memwatch$/),
      expect.stringMatching(/^-rw-r--r-- .* LICENSE$/)
    ])
    for (const name of ['LICENSE', 'contrib/krew/kubectl-memwatch']) {
      expect(tar('-xzOf', path.join(assets, ARCHIVE), path.basename(name))).toBe(read(ROOT, name))
    }
    const { spec: { platforms: [{ sha256: named, uri }] } } = parse(read(assets, 'krew-memwatch.yaml'))
    expect(named).toBe(sha256(fs.readFileSync(path.join(assets, ARCHIVE))))
    expect(path.basename(uri)).toBe(ARCHIVE)
  })

  it('outputs registry, image and charts for the workflow', () => {
    expect(outputs()).toEqual({
      version,
      prerelease: String(version.includes('-')),
      registry: IMAGE.split('/')[0],
      image: IMAGE,
      charts: CHARTS,
      'node-image': expect.stringMatching(/^docker\.io\/library\/node:\d+-\w+-slim$/)
    })
  })

  it.each([['1.2.3', 'latest'], ['1.2.3-rc.1', 'next']])(
    'publishes the packages of %s with provenance, as %s',
    (release, tag) => {
      const commands = publishCommands(assets, release)
      expect(commands.map(({ name }) => name)).toEqual(folders.map(nameOf))
      for (const { args } of commands) {
        expect(args[1]).toMatch(new RegExp(`/memwatch-[a-z]+-${release}\\.tgz$`))
        expect(args).toContain('--provenance')
        expect(args.slice(-2)).toEqual(['--tag', tag])
      }
    }
  )
})

describe.each(Object.keys(dashboards))('the dashboard %s for grafana.com', name => {
  const dashboard = JSON.parse(read(ROOT, 'dashboards', `${name}.json`))
  const exported = forGrafanaCom(dashboard)
  const inside = ({ __inputs, __requires, ...rest }) => JSON.stringify(rest)

  it('is equal to the file in the release', () => {
    expect(JSON.parse(read(assets, `grafana-${name}.json`))).toEqual(exported)
  })

  it('has an input for its data source, and uses no other', () => {
    expect(exported.__inputs).toEqual([
      expect.objectContaining({ name: 'DS_PROMETHEUS', type: 'datasource', pluginId: 'prometheus' })
    ])
    const uids = text => [...text.matchAll(/"type":"prometheus","uid":"([^"]*)"/g)].map(([, uid]) => uid)
    const before = uids(JSON.stringify(dashboard))
    expect(before.length).toBeGreaterThan(20)
    // eslint-disable-next-line no-template-curly-in-string
    expect(uids(inside(exported))).toEqual(before.map(() => '${DS_PROMETHEUS}'))
    expect(inside(exported)).not.toMatch(/\$\{?datasource\b/)
    expect(exported.templating.list.map(({ type }) => type)).not.toContain('datasource')
  })

  it('requires Grafana, Prometheus and each of its kinds of panels', () => {
    const types = [...JSON.stringify(dashboard.panels).matchAll(/"type":"(\w+)","transparent"/g)]
      .map(([, type]) => type)
    expect(types.length).toBeGreaterThan(3)
    expect(exported.__requires.map(({ type, id }) => `${type} ${id}`).sort()).toEqual(
      ['grafana grafana', 'datasource prometheus', ...new Set(types.map(type => `panel ${type}`))]
        .sort()
    )
  })

  it('has all panels and other variables', () => {
    expect(exported.panels.map(({ title }) => title)).toEqual(
      dashboard.panels.map(({ title }) => title)
    )
    expect(exported.templating.list.length).toBe(dashboard.templating.list.length - 1)
    expect(exported).toMatchObject({ id: null, uid: dashboard.uid, title: dashboard.title })
  })
})

it('a dashboard with an unnamed panel is not exported', () => {
  const panels = [{ type: 'row', panels: [{ type: 'heatmap' }] }]
  expect(() => forGrafanaCom({ panels, templating: { list: [] } })).toThrow('heatmap')
})

describe('the version', () => {
  it('is the same in all places', () => {
    expect(findVersionProblems()).toEqual([])
  })

  it.each([
    ['v0.0.1', 'tag v0.0.1: the packages have version'],
    [version, `tag ${version}: the packages have version`]
  ])('is not released by the tag %s', (tag, problem) => {
    expect(findVersionProblems(tag)).toContainEqual(expect.stringContaining(problem))
  })

  it('is not released while changes are unreleased', () => {
    const { changes } = findVersion(read(ROOT, 'CHANGELOG.md'), 'Unreleased')
    expect(findVersionProblems(`v${version}`)).toEqual(
      changes.length > 0 ? [expect.stringContaining('changes are unreleased')] : []
    )
  })

  it.each(PLACES.map(place => [place.file, place]))('is replaced in %s', (file, place) => {
    const text = read(ROOT, file)
    const next = withVersion(place, text, '77.0.0-rc.1')
    expect(next.split('77.0.0-rc.1').length - 1).toBe(text.match(place.pattern)?.length)
    expect(withVersion(place, next, version)).toBe(text)
  })

  it.each([['1.2.3', true], ['1.2.3-rc.1', true], ['v1.2.3', false], ['1.2', false], ['', false]])(
    '%j is valid: %s',
    (text, is) => {
      expect(VERSION.test(text)).toBe(is)
    }
  )
})

describe('the chart', () => {
  const chart = parse(read(ROOT, 'deploy/helm/memwatch/Chart.yaml'))

  it('names the repository, the registry and its icon', () => {
    expect(chart.home).toBe(REPOSITORY)
    expect(chart.icon).toBe(
      REPOSITORY.replace('//github.com', '//raw.githubusercontent.com') +
        '/main/deploy/helm/memwatch/icon.svg'
    )
    expect(read(ROOT, 'deploy/helm/memwatch/icon.svg')).toMatch(/^<svg [^>]*viewBox/)
    expect(parse(read(ROOT, 'deploy/helm/memwatch/values.yaml')).image.repository).toBe(IMAGE)
    expect(read(ROOT, 'deploy/helm/memwatch/README.md')).toContain(`oci://${CHARTS}/memwatch`)
  })

  it('gets changes, images and security notes of its release', () => {
    const changes = [
      { kind: 'Added', text: 'One: two' },
      { kind: 'Security', text: 'Three' }
    ]
    const annotations = releaseAnnotations({ name: '1.2.3', date: '2026-01-01', text: '', changes })
    expect(parse(annotations['artifacthub.io/changes'])).toEqual([
      { kind: 'added', description: 'One: two' },
      { kind: 'security', description: 'Three' }
    ])
    expect(parse(annotations['artifacthub.io/images'])).toEqual([
      { name: 'memwatch', image: `${IMAGE}:1.2.3` }
    ])
    expect(annotations['artifacthub.io/containsSecurityUpdates']).toBe('true')
    expect(releaseAnnotations({ name: '1.2.3', date: '', text: '', changes: [changes[0]] }))
      .toMatchObject({ 'artifacthub.io/containsSecurityUpdates': 'false' })
  })
})

describeWithGoTools('the packaged chart', ({ helm }) => {
  const show = what =>
    execFileSync(helm, ['show', what, path.join(assets, `memwatch-${version}.tgz`)], {
      encoding: 'utf8'
    })

  it('has its version, its annotations and its README', () => {
    const { changes } = findVersion(read(ROOT, 'CHANGELOG.md'), version)
    const { annotations, ...chart } = parse(show('chart'))
    expect(chart).toMatchObject({ name: 'memwatch', version, appVersion: version })
    expect(parse(annotations['artifacthub.io/changes']).length).toBe(changes.length)
    expect(annotations).toMatchObject({
      'artifacthub.io/category': 'monitoring-logging',
      'artifacthub.io/license': 'MIT'
    })
    expect(show('readme').trim()).toBe(read(ROOT, 'deploy/helm/memwatch/README.md').trim())
  })
})
