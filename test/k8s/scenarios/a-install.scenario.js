'use strict'

const { APP } = require('../images')
const {
  chart,
  CHART,
  eventually,
  get,
  helm,
  kubectl,
  kubectlWith,
  namespace,
  note,
  PATIENT_MS,
  place,
  RELEASE_LABEL,
  removeNamespaces
} = require('../cluster')

const ALL_ON = [
  'podMonitor',
  'serviceMonitor',
  'prometheusRule',
  'dashboards',
  'networkPolicy'
].map(name => `--set=${name}.enabled=true`)

afterEach(removeNamespaces)

it('helm installs the chart with all options and monitors, after a dry run', async () => {
  await kubectl('apply', '--server-side', '--filename', place.tools.crds)
  await kubectl(
    'wait',
    '--for=condition=Established',
    'crd/podmonitors.monitoring.coreos.com',
    'crd/servicemonitors.monitoring.coreos.com',
    'crd/prometheusrules.monitoring.coreos.com'
  )
  const args = [
    'everything',
    CHART,
    '--namespace',
    'everything',
    '--create-namespace',
    '--set=node.enabled=true',
    `--set-json=injection.namespaceSelector={"matchLabels":{"${RELEASE_LABEL}":"everything"}}`,
    ...ALL_ON
  ]
  await kubectl('create', 'namespace', 'everything')
  expect(await helm('install', ...args, '--dry-run=server')).toContain(
    'kind: MutatingAdmissionPolicy'
  )
  expect(
    (await get('mutatingadmissionpolicies')).items.filter(({ metadata }) =>
      metadata.name.startsWith('everything')
    )
  ).toEqual([])

  await helm('install', ...args)
  for (const kind of [
    'podmonitors',
    'servicemonitors',
    'prometheusrules',
    'networkpolicies',
    'daemonsets'
  ]) {
    expect((await get(kind, '--namespace', 'everything')).items.length).toBeGreaterThan(0)
  }
  expect(
    (await get('configmaps', '--namespace', 'everything', '--selector', 'grafana_dashboard=1'))
      .items.length
  ).toBeGreaterThanOrEqual(3)
  await helm('uninstall', 'everything', '--namespace', 'everything', '--wait')
  expect(
    (await get('mutatingadmissionpolicies')).items.filter(({ metadata }) =>
      metadata.name.startsWith('everything')
    )
  ).toEqual([])
  await kubectl('delete', 'namespace', 'everything', '--wait=false')
})

it('only pods that request it get the agent, once, with an annotation', async () => {
  const began = Date.now()
  await chart('sidecar')
  note(
    'from helm install until pods are injected, seconds',
    ((Date.now() - began) / 1000).toFixed(1)
  )
  const created = async (name, { metadata = {}, spec = {}, container = {} } = {}) =>
    JSON.parse(
      await kubectlWith(
        JSON.stringify({
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: { name: 'app', ...metadata },
          spec: { containers: [{ name: 'app', image: APP, ...container }], ...spec }
        }),
        '--namespace',
        name,
        'create',
        '--dry-run=server',
        '--output',
        'json',
        '--filename',
        '-'
      )
    )
  const asks = { annotations: { 'memwatch.dev/inject': 'true' } }
  const names = pod => (pod.spec.initContainers ?? []).map(({ name }) => name)

  const plain = await namespace('plain', { release: 'sidecar' })
  expect(names(await created(plain))).toEqual([])
  const pod = await created(plain, { metadata: asks })
  expect(names(pod)).toEqual(['memwatch-agent', 'memwatch'])
  expect(pod.metadata.annotations).toMatchObject({ 'memwatch.dev/injected': expect.any(String) })
  // A second injection changes nothing, as for a copied pod.
  expect(
    names(
      await created(plain, { metadata: { annotations: pod.metadata.annotations }, spec: pod.spec })
    )
  ).toEqual(['memwatch-agent', 'memwatch'])

  const whole = await namespace('whole', {
    release: 'sidecar',
    annotations: { 'memwatch.dev/inject': 'true' }
  })
  await eventually(
    () => created(whole),
    pod => names(pod).length === 2,
    PATIENT_MS
  )
  expect(
    names(await created(whole, { metadata: { annotations: { 'memwatch.dev/inject': 'false' } } }))
  ).toEqual([])

  const options = async container =>
    (await created(plain, { metadata: asks, container })).spec.containers[0].env.find(
      ({ name }) => name === 'NODE_OPTIONS'
    )
  expect(
    await options({ env: [{ name: 'NODE_OPTIONS', value: '--max-old-space-size=100' }] })
  ).toEqual({
    name: 'NODE_OPTIONS',
    value: '--max-old-space-size=100 --require /run/memwatch/agent/index.js'
  })
})

it('NODE_OPTIONS from a reference stays unchanged, with an annotation', async () => {
  await chart('sidecar')
  const shop = await namespace('elsewhere', { release: 'sidecar' })
  await kubectl(
    '--namespace',
    shop,
    'create',
    'configmap',
    'options',
    '--from-literal=node=--max-old-space-size=100'
  )
  const env = [
    { name: 'NODE_OPTIONS', valueFrom: { configMapKeyRef: { name: 'options', key: 'node' } } }
  ]
  const pod = JSON.parse(
    await kubectlWith(
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'app', annotations: { 'memwatch.dev/inject': 'true' } },
        spec: { containers: [{ name: 'app', image: APP, env }] }
      }),
      '--namespace',
      shop,
      'create',
      '--output',
      'json',
      '--filename',
      '-'
    )
  )
  expect(pod.spec.containers[0].env).toEqual(env)
  expect(pod.spec.initContainers).toBeUndefined()
  expect(pod.metadata.annotations['memwatch.dev/not-injected']).toBe(
    'app: NODE_OPTIONS comes from valueFrom'
  )
  await eventually(
    () => get('pod', 'app', '--namespace', shop),
    ({ status }) => status.phase === 'Running',
    PATIENT_MS
  )
})
