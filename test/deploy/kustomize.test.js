'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { generatedDeploy } = require('../../scripts/generate-deploy')
const { chart, kubeconform, kubeScore, kustomize, objects } = require('./manifests')
const { describeWithGoTools } = require('../support/tools')

const DEPLOY = path.join(__dirname, '../../deploy')
const VERSIONS = ['1.29', '1.31', '1.36']
const read = name => fs.readFileSync(path.join(DEPLOY, name), 'utf8')
const byName = (items, name) => items.find(item => item.name === name)

describeWithGoTools('beside the chart', tools => {
  it('everything equals the output of the chart: npm run generate:deploy', () => {
    for (const [name, content] of Object.entries(generatedDeploy(tools.helm))) {
      expect({ name, content: read(name) }).toEqual({ name, content })
    }
  })

  describe.each([
    ['injection', ['1.36']],
    ['monitoring', VERSIONS],
    ['node', VERSIONS]
  ])('kustomize/%s', (name, versions) => {
    it.each(versions)('is valid for Kubernetes %s', kubernetes => {
      expect(
        kubeconform(tools, kubernetes, kustomize(tools, path.join(DEPLOY, 'kustomize', name)))
      ).toEqual([])
    })
  })

  it('no earlier version has a MutatingAdmissionPolicy, according to the schemas', () => {
    expect(
      kubeconform(tools, '1.31', kustomize(tools, path.join(DEPLOY, 'kustomize/injection'))).join()
    ).toContain('could not find schema for MutatingAdmissionPolicy')
  })

  it('kustomize/monitoring has the same dashboards as the chart', () => {
    const mapsOf = manifests =>
      objects(manifests)
        .filter(({ kind }) => kind === 'ConfigMap')
        .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
        .map(({ metadata: { name, namespace, labels, annotations }, data }) => ({
          name,
          namespace,
          found: labels.grafana_dashboard,
          annotations,
          data: Object.fromEntries(
            Object.entries(data).map(([file, text]) => [file, JSON.parse(text)])
          )
        }))
    expect(mapsOf(kustomize(tools, path.join(DEPLOY, 'kustomize/monitoring')))).toEqual(
      mapsOf(chart(tools, { dashboards: { enabled: true } }))
    )
  })

  describe('the sidecar component', () => {
    let built
    let all
    const podOf = name => all.find(({ metadata }) => metadata.name === name).spec.template
    beforeAll(() => {
      built = kustomize(tools, path.join(__dirname, 'apps'))
      all = objects(built)
    })

    it.each(VERSIONS)('creates valid manifests for Kubernetes %s', kubernetes => {
      expect(kubeconform(tools, kubernetes, built)).toEqual([])
    })
    it('adds to a workload the same settings as the static sidecar', () => {
      const [{ spec: { template: example } }] = objects(read('sidecar.yaml'))
      for (const [pod, containers] of [
        [podOf('full'), ['web', 'worker']],
        [podOf('bare'), ['app']]
      ]) {
        expect(pod.metadata.labels['memwatch.dev/sidecar']).toBe('true')
        for (const { name } of example.spec.initContainers) {
          expect(byName(pod.spec.initContainers, name)).toEqual(
            byName(example.spec.initContainers, name)
          )
        }
        for (const { name } of example.spec.volumes) {
          expect(byName(pod.spec.volumes, name)).toEqual(byName(example.spec.volumes, name))
        }
        expect(pod.spec.securityContext.supplementalGroups).toContain(65532)
        for (const name of containers) {
          const { env, volumeMounts } = byName(pod.spec.containers, name)
          const [app] = example.spec.containers
          expect(volumeMounts).toEqual(expect.arrayContaining(app.volumeMounts))
          expect(env).toEqual(
            expect.arrayContaining(
              app.env.filter(({ name }) => !['NODE_OPTIONS', 'MEMWATCH_CONTAINER'].includes(name))
            )
          )
          // The preload is part of the workload itself, so `memwatch fix` must keep it.
          expect(byName(env, 'MEMWATCH_INJECTED')).toBeUndefined()
        }
      }
    })
    it('appends the agent to an existing NODE_OPTIONS', () => {
      expect(byName(byName(podOf('full').spec.containers, 'web').env, 'NODE_OPTIONS').value).toBe(
        '--max-old-space-size=100 --no-deprecation --require /run/memwatch/agent/index.js'
      )
      expect(byName(podOf('bare').spec.containers[0].env, 'NODE_OPTIONS').value.trim()).toBe(
        '--require /run/memwatch/agent/index.js'
      )
    })
    it('changes no existing settings of a workload, and no workload without the mark', () => {
      const { spec } = podOf('full')
      expect(spec.securityContext).toEqual({ fsGroup: 2000, supplementalGroups: [7, 65532] })
      expect(byName(spec.initContainers, 'migrate')).toEqual({ name: 'migrate', image: 'app' })
      expect(byName(spec.containers, 'web').volumeMounts).toContainEqual({
        name: 'data',
        mountPath: '/data'
      })
      expect(podOf('other')).toEqual({
        metadata: { labels: { app: 'other' } },
        spec: { containers: [{ name: 'app', image: 'app' }] }
      })
      expect(all.map(({ kind }) => kind).sort()).toEqual([
        'Deployment',
        'Deployment',
        'StatefulSet'
      ])
    })
  })

  describe('sidecar.yaml', () => {
    it.each(VERSIONS)('is valid for Kubernetes %s', kubernetes => {
      expect(kubeconform(tools, kubernetes, read('sidecar.yaml'))).toEqual([])
    })
    it('passes kube-score', () => {
      expect(
        kubeScore(tools, read('sidecar.yaml'), [
          // The reason is the same as for the chart.
          'container-image-pull-policy',
          'container-ephemeral-storage-request-and-limit',
          // The app of the example runs as the user `node` of its image.
          'container-security-context-user-group-id',
          'pod-networkpolicy',
          'deployment-has-poddisruptionbudget',
          'deployment-replicas',
          'deployment-has-host-podantiaffinity' // This check is about the app, not about memwatch.
        ])
      ).toEqual([])
    })
    it('keeps a Guaranteed app Guaranteed, and delays no app', () => {
      const [{ spec: { template: { spec } } }] = objects(read('sidecar.yaml'))
      for (const {
        resources,
        readinessProbe,
        startupProbe,
        livenessProbe
      } of spec.initContainers) {
        expect(resources.requests).toEqual(resources.limits)
        expect([readinessProbe, startupProbe, livenessProbe]).toEqual([
          undefined,
          undefined,
          undefined
        ])
      }
    })
  })
})
