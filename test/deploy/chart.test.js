'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { spawnSync } = require('node:child_process')
const { parse } = require('yaml')
const { options } = require('../../exporter/config')
const { version } = require('../../exporter/package.json')
const { options: agentOptions } = require('@memwatch/agent/protocol/config')
const { dashboards } = require('../../scripts/dashboards')
const { chart, kubeconform, kubeScore, objects, CHART } = require('./manifests')
const { describeWithGoTools } = require('../support/tools')

const ROOT = path.join(__dirname, '../..')
const CI = fs.readdirSync(path.join(CHART, 'ci')).map(name => path.join(CHART, 'ci', name))
const VERSIONS = ['1.29', '1.31', '1.36']
const WITHOUT_INJECTION = { injection: { enabled: false } }
const valuesOf = file => parse(fs.readFileSync(path.join(CHART, file), 'utf8'))
const injects = file =>
  file === undefined || parse(fs.readFileSync(file, 'utf8')).injection?.enabled !== false

/** Checks of kube-score that do not apply here, with the reason. */
const NOT_HERE = [
  // Tags are versions and never change. A pod whose image is present must start without the
  // registry.
  'container-image-pull-policy',
  // Pods write to volumes only, and these have a size limit.
  'container-ephemeral-storage-request-and-limit',
  // One container of the DaemonSet is root for a moment, without capabilities. The check requires
  // ids above 10000.
  'container-security-context-user-group-id',
  // Pods with sidecars belong to users, and the chart does not render them.
  'networkpolicy-targets-pod'
]

it('the chart has the version of the packages', () => {
  expect(valuesOf('Chart.yaml')).toMatchObject({ version, appVersion: version })
})

describe('the schema of the values', () => {
  const schema = JSON.parse(fs.readFileSync(path.join(CHART, 'values.schema.json'), 'utf8'))
  const resolve = of => of.$ref ? schema.definitions[of.$ref.replace('#/definitions/', '')] : of
  const isOpen = ({ type, properties, additionalProperties }) =>
    type === 'object' && !properties && additionalProperties !== false

  it('describes every value, and every value has a default', () => {
    const differences = []
    const compare = (of, values, at) => {
      const { properties } = resolve(of)
      if (!properties || at === 'resources') return
      const known = Object.keys(properties).filter(name => !(at === '' && name === 'global'))
      for (const name of new Set([...known, ...Object.keys(values)])) {
        if (!(name in values) || !(name in properties)) differences.push(`${at}.${name}`)
        else if (
          values[name] !== null &&
          typeof values[name] === 'object' &&
          !/(resources|Selector)$/.test(name)
        ) { compare(properties[name], values[name], name) }
      }
    }
    compare(schema, valuesOf('values.yaml'), '')
    expect(differences).toEqual([])
  })

  it('refuses unknown values', () => {
    const open = []
    const walk = (of, at) => {
      if (of.properties && of.additionalProperties !== false) open.push(at)
      for (const [name, value] of Object.entries(of.properties ?? {})) walk(value, `${at}.${name}`)
      if (of.items) walk(of.items, `${at}[]`)
    }
    walk(schema, '')
    for (const [name, of] of Object.entries(schema.definitions)) if (!isOpen(of)) walk(of, name)
    expect(open).toEqual([])
  })
})

describeWithGoTools('the Helm chart', tools => {
  describe.each(
    [undefined, ...CI].map(file => [file ? path.basename(file, '-values.yaml') : 'default', file])
  )('%s', (_, file) => {
    const files = file ? [file] : []
    it('passes helm lint --strict', () => {
      const { status, stdout, stderr } = spawnSync(
        tools.helm,
        ['lint', '--strict', CHART, ...files.flatMap(name => ['--values', name])],
        { encoding: 'utf8' }
      )
      expect(status === 0 ? '' : stdout + stderr).toBe('')
    })
    it.each(VERSIONS)('is valid for Kubernetes %s', kubernetes => {
      const values = kubernetes === '1.36' ? {} : WITHOUT_INJECTION
      const manifests = chart(tools, values, { kubernetes, files })
      // The default without injection creates nothing.
      if (objects(manifests).length > 0) {
        expect(kubeconform(tools, kubernetes, manifests)).toEqual([])
      } else expect(file).toBeUndefined()
    })
    it('reports before Kubernetes 1.36 that injection is missing, and the alternative', () => {
      const early = () => chart(tools, {}, { kubernetes: '1.35', files })
      if (injects(file)) {
        expect(early).toThrow(
          'injection needs Kubernetes 1.36 or later (MutatingAdmissionPolicy v1), this is ' +
            'v1.35: set injection.enabled=false, and add the sidecar to the workload itself, as ' +
              'deploy/sidecar.yaml shows'
        )
      } else expect(early).not.toThrow()
    })
    if (file && parse(fs.readFileSync(file, 'utf8')).node?.enabled) {
      it('passes kube-score', () => {
        expect(kubeScore(tools, chart(tools, {}, { files }), NOT_HERE)).toEqual([])
      })
    }
    it('has notes without unresolved values', () => {
      const { stdout, stderr } = spawnSync(
        tools.helm,
        [
          'install',
          'memwatch',
          CHART,
          '--namespace',
          'memwatch',
          '--dry-run=client',
          ...files.flatMap(name => ['--values', name])
        ],
        { encoding: 'utf8' }
      )
      const notes = stdout.split('\nNOTES:\n')[1] ?? stderr
      expect(notes).toMatch(/^memwatch \S+ is installed\./)
      expect(notes).not.toMatch(/<no value>|%!|map\[|\n{3}/)
    })
    it('uses only existing variables of memwatch', () => {
      const known = [...Object.values(options), ...Object.values(agentOptions)].map(
        ({ env }) => env
      )
      const used = new Set(
        [...chart(tools, {}, { files }).matchAll(/\bMEMWATCH_[A-Z_]+\b/g)].map(([name]) => name)
      )
      expect([...used].filter(name => !known.includes(name))).toEqual([])
    })
  })

  it.each([
    [
      'a misspelt name',
      { injection: { enabeld: true } },
      "at '/injection': additional properties 'enabeld' not allowed"
    ],
    [
      'a misspelt section',
      { podMonitors: { enabled: true } },
      "at '': additional properties 'podMonitors' not allowed"
    ],
    [
      'a misspelt resource',
      { sidecar: { resources: { limits: { memroy: '1Mi' } } } },
      "additional properties 'memroy' not allowed"
    ],
    [
      'an unknown mode',
      { injection: { mode: 'pod' } },
      "at '/injection/mode': value must be one of 'sidecar', 'node'"
    ],
    [
      'text for a switch',
      { node: { enabled: 'yes' } },
      "at '/node/enabled': got string, want boolean"
    ],
    [
      'a tag for a digest',
      { image: { digest: 'v1' } },
      "at '/image/digest': 'v1' does not match pattern"
    ],
    ['a port above 65535', { port: 65536 }, "at '/port': maximum: got 65,536, want 65,535"],
    [
      'a size without a unit',
      { sidecar: { dataMax: '32' } },
      "at '/sidecar/dataMax': '32' does not match pattern"
    ],
    [
      'a variable of memwatch in extraEnv, which stops the exporter if misspelt',
      { exporter: { extraEnv: [{ name: 'MEMWATCH_LISTN', value: 'x' }] } },
      "at '/exporter/extraEnv/0/name': 'not' failed"
    ],
    [
      'a Secret that would delay pods',
      {
        exporter: {
          extraEnv: [{ name: 'A', valueFrom: { secretKeyRef: { name: 'a', key: 'b' } } }]
        }
      },
      "missing property 'optional'"
    ],
    [
      'the same with optional: false',
      {
        exporter: {
          extraEnv: [
            { name: 'A', valueFrom: { secretKeyRef: { name: 'a', key: 'b', optional: false } } }
          ]
        }
      },
      "at '/exporter/extraEnv/0/valueFrom/secretKeyRef/optional': value must be true"
    ],
    [
      'an interval without a unit',
      { podMonitor: { interval: '15' } },
      "at '/podMonitor/interval': '15' does not match pattern"
    ]
  ])('refuses %s', (_, values, message) => {
    expect(() => chart(tools, values)).toThrow(message)
  })

  it.each([
    [
      'restartPolicy: Always',
      'restartPolicyy: Always',
      "additional properties 'restartPolicyy' not allowed"
    ],
    ['sizeLimit', 'sizelimit', "additional properties 'sizelimit' not allowed"],
    ['kind: DaemonSet', 'kind: DaemonSets', 'could not find schema for DaemonSets'],
    ['interval: 15s', 'intervall: 15s', "additional properties 'intervall' not allowed"],
    ['expr: ', 'expression: ', "additional properties 'expression' not allowed"],
    ['policyTypes:', 'policyType:', "additional properties 'policyType' not allowed"],
    ['matchConditions:', 'matchCondition:', "additional properties 'matchCondition' not allowed"]
  ])('the test detects %s misspelt as %s', (right, wrong, message) => {
    const file = path.join(CHART, 'ci/everything-values.yaml')
    const manifests =
      chart(tools, {}, { files: [file] }) +
      '---\n' +
      fs.readFileSync(path.join(ROOT, 'deploy/sidecar.yaml'), 'utf8')
    expect(manifests).toContain(right)
    expect(kubeconform(tools, '1.36', manifests.replaceAll(right, wrong)).join()).toContain(message)
  })

  it('kube-score detects a container without limits', () => {
    expect(
      kubeScore(
        tools,
        chart(tools, { node: { enabled: true, resources: { limits: null } } }, { show: ['node'] }),
        NOT_HERE
      ).join()
    ).toContain('limit is not set')
  })

  describe('alerts', () => {
    const rulesOf = values =>
      Object.fromEntries(
        objects(
          chart(
            tools,
            { prometheusRule: { enabled: true, ...values } },
            { show: ['prometheus-rule'] }
          )
        ).map(({ metadata, spec }) => [
          metadata.name,
          { labels: metadata.labels, groups: spec.groups }
        ])
      )
    const groupsOf = name => parse(fs.readFileSync(path.join(ROOT, 'alerts', name), 'utf8')).groups

    it('are those of alerts/, with escaped braces of Prometheus templates', () => {
      const rules = rulesOf({ promClient: true, labels: { release: 'kube-prometheus-stack' } })
      expect(rules['memwatch-alerts'].groups).toEqual(groupsOf('memwatch.alerts.yaml'))
      expect(rules['memwatch-rules'].groups).toEqual(groupsOf('memwatch.rules.yaml'))
      expect(rules['memwatch-prom-client'].groups).toEqual(groupsOf('prom-client.rules.yaml'))
      expect(JSON.stringify(rules['memwatch-alerts'].groups)).toContain('{{ $labels.target }}')
      expect(Object.values(rules).map(({ labels }) => labels.release)).toEqual(
        Array(3).fill('kube-prometheus-stack')
      )
    })
    it('link to the configured Grafana and runbooks', () => {
      const {
        'memwatch-alerts': { groups }
      } = rulesOf({ grafanaUrl: 'https://grafana.test/', runbookUrl: 'https://wiki.test/memwatch' })
      const annotations = groups.flatMap(({ rules }) => rules.map(rule => rule.annotations))
      for (const { runbook_url: runbook, dashboard_url: dashboard } of annotations) {
        expect(runbook).toMatch(/^https:\/\/wiki\.test\/memwatch\/\w+\.md$/)
        if (dashboard) expect(dashboard).toMatch(/^https:\/\/grafana\.test\/d\//)
      }
      expect(annotations.length).toBeGreaterThan(10)
    })
  })

  it('dashboards are those of dashboards/, each in a ConfigMap below the size limit', () => {
    const maps = objects(
      chart(tools, { dashboards: { enabled: true, promClient: true } }, { show: ['dashboards'] })
    )
    expect(maps.map(({ data }) => Object.keys(data)[0]).sort()).toEqual(
      Object.keys(dashboards)
        .map(name => `memwatch-${name}.json`)
        .sort()
    )
    for (const { metadata, data } of maps) {
      const [[name, text]] = Object.entries(data)
      expect(JSON.parse(text)).toEqual(
        JSON.parse(
          fs.readFileSync(path.join(ROOT, 'dashboards', name.replace('memwatch-', '')), 'utf8')
        )
      )
      expect(metadata).toMatchObject({
        labels: { grafana_dashboard: '1' },
        annotations: { grafana_folder: 'memwatch' }
      })
      // kubectl apply stores a copy in an annotation, which holds at most 256 KiB.
      expect(Buffer.byteLength(text)).toBeLessThan(200 * 1024)
    }
  })
})
