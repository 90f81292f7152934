'use strict'

const path = require('node:path')
const { spawnSync } = require('node:child_process')
const { cases, podOf, check, ASKS } = require('./injection-cases')
const { chart, kubeconform, objects } = require('./manifests')
const { describeWithGoTools } = require('../support/tools')

/** @returns {{ pod?: any, error?: string }[]} */
function admit (policy, requests) {
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [path.join(__dirname, '../support/admission-by-cel.js')],
    { encoding: 'utf8', input: JSON.stringify({ policy, requests }) }
  )
  if (stdout === '') throw new Error(stderr)
  return JSON.parse(stdout)
}

/** Defaults that the API server sets before it applies the policy. */
const withDefaults = pod => ({ ...pod, spec: { securityContext: {}, ...pod.spec } })

describeWithGoTools('injection, by CEL', tools => {
  const policyOf = values => objects(chart(tools, values, { show: ['injection-policy'] }))[0]
  const admitOne = (values, container = {}, metadata = {}) => {
    const [{ pod, error }] = admit(policyOf(values), [
      {
        pod: {
          metadata,
          spec: { containers: [{ name: 'app', ...container }], securityContext: {} }
        },
        namespace: { metadata: ASKS }
      }
    ])
    if (error) throw new Error(error)
    return pod
  }

  describe.each(/** @type {const} */ (['sidecar', 'node']))('mode %s', mode => {
    const own = cases.filter(of => of.mode === undefined || of.mode === mode)
    const before = own.map(of => withDefaults(podOf(of)))
    const namespaces = own.map(of => ({ metadata: of.namespace ?? ASKS }))
    let after
    let twice

    beforeAll(() => {
      const policy = policyOf({ injection: { mode } })
      after = admit(policy, before.map((pod, i) => ({ pod, namespace: namespaces[i] })))
      // A policy may be applied twice: a controller copies the pod, or another policy causes a
      // second pass.
      twice = admit(policy, after.map(({ pod }, i) => ({ pod, namespace: namespaces[i] })))
    })

    it.each(own.map((of, i) => [of.title, of, i]))('%s', (_, of, i) => {
      expect(after[i].error).toBeUndefined()
      check(of, mode, before[i], after[i].pod)
      expect(twice[i].pod).toEqual(after[i].pod)
    })

    it('creates pods with only fields that the API server knows', () => {
      expect(
        kubeconform(tools, '1.36', after.map(({ pod }) => JSON.stringify(pod)).join('\n---\n'))
      ).toEqual([])
    })
  })

  it('reports a patch that fails', () => {
    const policy = policyOf({})
    policy.spec.mutations[0].jsonPatch.expression =
      policy.spec.mutations[0].jsonPatch.expression.replace(
        '/spec/initContainers/-',
        '/spec/initContainer/-'
      )
    expect(
      admit(policy, [{ pod: withDefaults(podOf(cases[0])), namespace: { metadata: ASKS } }])[0]
        .error
    ).toContain('add /spec/initContainer/-: there is none')
  })

  it('adds annotations for Prometheus on request, and keeps existing ones', () => {
    const values = { injection: { prometheusAnnotations: true } }
    expect(admitOne(values).metadata.annotations).toMatchObject({
      'prometheus.io/scrape': 'true',
      'prometheus.io/port': '16369',
      'prometheus.io/path': '/metrics'
    })
    expect(
      admitOne(
        values,
        {},
        { annotations: { 'prometheus.io/scrape': 'true', 'prometheus.io/port': '3000' } }
      ).metadata.annotations['prometheus.io/port']
    ).toBe('3000')
  })

  it('queries malloc on request, unless the container forbids it', () => {
    const accessOf = env =>
      admitOne({ injection: { allocatorAccess: 'trim' } }, { env })
        .spec.containers[0].env.filter(({ name }) => name === 'MEMWATCH_ALLOCATOR_ACCESS')
        .map(({ value }) => value)
    expect(accessOf([])).toEqual(['trim'])
    expect(accessOf([{ name: 'MEMWATCH_ALLOCATOR_ACCESS', value: 'off' }])).toEqual(['off'])
  })

  it('copies the token of a Secret before the agent creates one; none blocks no pod', () => {
    const {
      spec: { initContainers, volumes }
    } = admitOne({ token: { existingSecret: 'memwatch' } })
    expect(initContainers.map(({ name }) => name)).toEqual([
      'memwatch-token',
      'memwatch-agent',
      'memwatch'
    ])
    expect(volumes.find(({ name }) => name === 'memwatch-token').secret.optional).toBe(true)
  })
})
