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
      // By a controller that copies the pod, or as other policies came in between.
      twice = admit(policy, after.map(({ pod }, i) => ({ pod, namespace: namespaces[i] })))
    })

    it.each(own.map((of, i) => [of.title, of, i]))('%s', (_, of, i) => {
      expect(after[i].error).toBeUndefined()
      check(of, mode, before[i], after[i].pod)
      expect(twice[i].pod).toEqual(after[i].pod)
    })

    it('makes pods whose every field the API server knows', () => {
      expect(
        kubeconform(tools, '1.36', after.map(({ pod }) => JSON.stringify(pod)).join('\n---\n'))
      ).toEqual([])
    })
  })

  it('does not hide a patch that fails', () => {
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

  it('gives annotations for Prometheus where they are asked for, and leaves those that are there', () => {
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

  it('asks malloc where that is wanted, and not where the container says otherwise', () => {
    const accessOf = env =>
      admitOne({ injection: { allocatorAccess: 'trim' } }, { env })
        .spec.containers[0].env.filter(({ name }) => name === 'MEMWATCH_ALLOCATOR_ACCESS')
        .map(({ value }) => value)
    expect(accessOf([])).toEqual(['trim'])
    expect(accessOf([{ name: 'MEMWATCH_ALLOCATOR_ACCESS', value: 'off' }])).toEqual(['off'])
  })

  it('copies the token of a Secret before the agent makes one; a Secret that is not there holds nobody back', () => {
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
