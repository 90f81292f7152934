'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { spawnSync } = require('node:child_process')
const { Ajv } = require('ajv')
const { parse, stringify } = require('yaml')
const { valuesTable } = require('../../scripts/chart-readme')
const { generated } = require('../../scripts/contrib')
const { toWords } = require('../../scripts/contrib/awesome-prometheus-alerts')
const { REPOSITORY, folders, nameOf, version } = require('../../scripts/packages')
const { describeWithTools } = require('../support/tools')

const ROOT = path.join(__dirname, '../..')
const read = name => fs.readFileSync(path.join(ROOT, name), 'utf8')
const text = { type: 'string', minLength: 1 }
const url = { type: 'string', pattern: '^https://' }
const object = (properties, optional = []) => ({
  type: 'object',
  properties,
  required: Object.keys(properties).filter(name => !optional.includes(name)),
  additionalProperties: false
})
const list = items => ({ type: 'array', items, minItems: 1 })

/** Formats of the catalogues, by their documentation. */
const SHAPES = {
  'contrib/awesome-prometheus-alerts.yml': object({
    groups: list(object({
      name: { const: 'Runtimes' },
      services: list(object({
        name: text,
        logo: { type: 'string', pattern: '^/images/services/[a-z0-9-]+\\.svg$' },
        exporters: list(object({
          name: text,
          slug: { type: 'string', pattern: '^[a-z0-9-]+$' },
          doc_url: url,
          rules: list(object({
            name: { type: 'string', pattern: '^[A-Z][a-z0-9 ]+$' },
            // Its template puts the description in double quotes and the query in single quotes.
            description: { type: 'string', pattern: '^[^"\\n]+$' },
            query: { type: 'string', pattern: "^[^'\\n]+$" },
            severity: { enum: ['critical', 'warning', 'info'] },
            for: { type: 'string', pattern: '^[1-9][0-9]*m$' }
          }))
        }))
      }))
    }))
  }),
  'contrib/krew/memwatch.yaml': object({
    apiVersion: { const: 'krew.googlecontainertools.github.com/v1alpha2' },
    kind: { const: 'Plugin' },
    metadata: object({ name: { const: 'memwatch' } }),
    spec: object({
      version: { const: `v${version}` },
      homepage: url,
      shortDescription: { type: 'string', maxLength: 50, pattern: '^[A-Z].*[^.]$' },
      description: text,
      caveats: text,
      platforms: list(object({
        selector: object({
          matchExpressions: list(object({
            key: { enum: ['os', 'arch'] },
            operator: { const: 'In' },
            values: list(text)
          }))
        }),
        uri: { type: 'string', pattern: `^${REPOSITORY}/releases/download/v.*\\.tar\\.gz$` },
        sha256: { type: 'string', pattern: '^[0-9a-f]{64}$' },
        bin: text,
        files: list(object({ from: text, to: { const: '.' } }))
      }))
    })
  }),
  'contrib/opentelemetry-registry.yml': object({
    title: text,
    registryType: { enum: ['application integration', 'exporter', 'instrumentation'] },
    language: { const: 'js' },
    tags: { ...list(text), uniqueItems: true },
    license: { const: 'MIT' },
    description: text,
    authors: list(object({ name: { type: 'string', not: { pattern: 'OpenTelemetry' } }, url })),
    urls: object({ repo: url, docs: url }),
    createdAt: { type: 'string', pattern: '^\\d{4}-\\d{2}-\\d{2}$' },
    isNative: { type: 'boolean' },
    isFirstParty: { type: 'boolean' },
    package: object({
      registry: { const: 'npm' },
      name: { enum: folders.map(nameOf) },
      version: { const: version }
    })
  }),
  'contrib/artifacthub-repo.yml': object(
    {
      repositoryID: { type: 'string', pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' },
      owners: list(object({ name: text, email: text })),
      ignore: list(object({ name: text, version: text }, ['version']))
    },
    ['repositoryID', 'owners', 'ignore']
  )
}

describe.each(Object.entries(SHAPES))('%s', (file, shape) => {
  it('has the format of its catalogue', () => {
    const ajv = new Ajv({ allErrors: true, strict: true })
    expect(ajv.validate(shape, parse(read(file))) ? [] : ajv.errors).toEqual([])
  })

  it('stands in contrib/README.md', () => {
    expect(read('contrib/README.md')).toContain(`(${path.relative('contrib', file)})`)
  })
})

it.each(Object.entries(generated))('%s is up to date', (file, make) => {
  expect(read(file)).toBe(make())
})

describe('the entry of awesome-prometheus-alerts', () => {
  const { groups: [{ services: [{ exporters }] }] } =
    parse(read('contrib/awesome-prometheus-alerts.yml'))
  const rules = exporters.flatMap(exporter => exporter.rules)
  /** Name of an alert, formed as the collection does it. */
  const toAlert = name => name.split(' ').map(word => word[0].toUpperCase() + word.slice(1)).join('')
  const committed = ['memwatch.alerts.yaml', 'prom-client.rules.yaml'].flatMap(file =>
    parse(read(`alerts/${file}`)).groups.flatMap(group => group.rules))

  it('has every alert that needs no recording rule, with its name', () => {
    const missing = committed.map(({ alert }) => alert)
      .filter(alert => !rules.some(({ name }) => toAlert(name) === alert))
    expect(missing.sort()).toEqual(['MemwatchExporterDown', 'MemwatchMemoryNearLimit'])
    expect(rules.length).toBe(committed.length - missing.length)
    expect(rules.length).toBeGreaterThan(20)
  })

  it('waits as long as the alert of the same name', () => {
    for (const { name, for: wait } of rules) {
      const own = committed.find(({ alert }) => alert === toAlert(name)).for
      const seconds = own.endsWith('m') ? Number.parseInt(own) * 60 : Number.parseInt(own)
      expect({ [name]: Number.parseInt(wait) * 60 }).toEqual({ [name]: seconds })
    }
  })

  it('turns names into words and back', () => {
    expect(toWords('MemwatchJsHeapLeak')).toBe('Memwatch js heap leak')
    expect(toAlert('Memwatch js heap leak')).toBe('MemwatchJsHeapLeak')
  })

  describeWithTools('its rules', ({ promtool }) => {
    it('are accepted by promtool', () => {
      const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-contrib-'))
      const file = path.join(folder, 'rules.yml')
      fs.writeFileSync(file, stringify({
        groups: exporters.map(exporter => ({
          name: exporter.slug,
          rules: exporter.rules.map(({ name, query, severity, description, for: wait }) => ({
            alert: toAlert(name),
            expr: query,
            for: wait,
            labels: { severity },
            annotations: { description }
          }))
        }))
      }))
      const { stdout, stderr } = spawnSync(promtool, ['check', 'rules', file], { encoding: 'utf8' })
      fs.rmSync(folder, { recursive: true, force: true })
      expect(stdout + stderr).toContain(`SUCCESS: ${rules.length} rules found`)
    })
  })
})

describe('kubectl memwatch', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-kubectl-'))
  const plugin = path.join(ROOT, 'contrib/krew/kubectl-memwatch')
  const run = (...args) => spawnSync('sh', [plugin, ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, PATH: `${folder}${path.delimiter}${process.env.PATH}` }
  })
  beforeAll(() => {
    fs.writeFileSync(path.join(folder, 'kubectl'), '#!/bin/sh\nprintf "%s\\n" "$@"\nexit 3\n', {
      mode: 0o755
    })
  })
  afterAll(() => fs.rmSync(folder, { recursive: true, force: true }))

  it.each([
    ['web-0', 'exec web-0 -c memwatch -- memwatch top'],
    ['deployment/web last-death', 'exec deployment/web -c memwatch -- memwatch last-death'],
    [
      '-n shop --context a web-0 fix web --format kubernetes',
      'exec --context a --namespace shop web-0 -c memwatch -- memwatch fix web --format kubernetes'
    ],
    ['-c other web-0 top -n 3', 'exec web-0 -c other -- memwatch top -n 3']
  ])('%s runs kubectl %s, and ends with its status', (given, expected) => {
    const { status, stdout } = run(...given.split(' '))
    expect(stdout.trim().split('\n')).toEqual(expected.split(' '))
    expect(status).toBe(3)
  })

  it('keeps arguments with spaces and quotes in one piece', () => {
    expect(run('web-0', 'fix', "a 'b' $c").stdout.split('\n').at(-2)).toBe("a 'b' $c")
  })

  it.each([
    [[], 'expected a POD'],
    [['-n'], '-n needs a value'],
    [['--loud', 'web-0'], 'unknown option --loud']
  ])('refuses %j', (given, message) => {
    const { status, stdout, stderr } = run(...given)
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
    expect(stderr).toContain(`kubectl memwatch: ${message}`)
  })

  it('shows its usage', () => {
    expect(run('--help')).toMatchObject({ status: 0, stdout: expect.stringContaining('Usage:') })
  })
})

describe('the table of the chart’s values', () => {
  it('has a row for each value and each described group', () => {
    const yaml = [
      '# About the file.',
      '',
      '# A name.',
      'name: ""',
      '# A group.',
      'group:',
      '  # First: a | b.',
      '  #   - example: 1',
      '  first: true',
      '  resources:',
      '    limits: { cpu: 1 }',
      ''
    ].join('\n')
    expect(valuesTable(yaml).split('\n').slice(2)).toEqual([
      '| `name` | `""` | A name. |',
      '| `group` |  | A group. |',
      '| `group.first` | `true` | First: a \\| b. |',
      '| `group.resources` | `{"limits":{"cpu":1}}` |  |'
    ])
  })
})
