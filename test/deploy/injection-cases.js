'use strict'

const assert = require('node:assert')

/**
 * Pods as their authors write them, without the API server's defaults.
 * @typedef {Record<string, any>} Pod
 */

/**
 * Pods that request injection, and the expected results, tested by CEL in test/deploy and by a real
 * API server in test/k8s.
 *
 * @typedef {object} Case
 * @property {string} title
 * @property {'sidecar' | 'node'} [mode] only in this mode; default: in both
 * @property {Record<string, string>} [annotations] annotations of the pod
 * @property {{ annotations?: Record<string, string>, labels?: Record<string, string> }} [namespace]
 *   default: an annotation that requests injection
 * @property {Record<string, any>} spec
 * @property {string[]} injected names of the containers that get the agent; if there are none, the
 *   pod stays unchanged
 * @property {string} [refused] annotation with the reason for a refusal
 * @property {(pod: Pod) => void} [also]
 */

const ASKS = { annotations: { 'memwatch.dev/inject': 'true' } }
const app = { name: 'app', image: 'app' }
const worker = { name: 'worker', image: 'app' }
const fromConfigMap = {
  name: 'NODE_OPTIONS',
  valueFrom: { configMapKeyRef: { name: 'settings', key: 'options' } }
}
const PRELOAD = '--require /run/memwatch/agent/index.js'

/**
 * @param {Pod} pod
 * @param {string} container
 * @param {string} name
 * @returns {any}
 */
const envOf = (pod, container, name) =>
  pod.spec.containers.find(c => c.name === container).env?.find(e => e.name === name)
/**
 * @param {string} value
 * @param {string} [container]
 * @returns {(pod: Pod) => void}
 */
const nodeOptions =
  (value, container = 'app') =>
    pod =>
      assert.strictEqual(envOf(pod, container, 'NODE_OPTIONS').value, value)
/**
 * @param {number[]} groups
 * @returns {(pod: Pod) => void}
 */
const groups = groups => pod =>
  assert.deepStrictEqual(pod.spec.securityContext.supplementalGroups, groups)

/** @type {Case[]} */
const cases = [
  {
    title: 'a pod with nothing but a container',
    spec: { containers: [app] },
    injected: ['app'],
    also: nodeOptions(PRELOAD)
  },
  {
    title: 'a pod that asks itself',
    annotations: ASKS.annotations,
    namespace: {},
    spec: { containers: [app] },
    injected: ['app']
  },
  { title: 'nobody asks', namespace: {}, spec: { containers: [app] }, injected: [] },
  {
    title: 'a pod that opts out',
    annotations: { 'memwatch.dev/inject': 'false' },
    spec: { containers: [app] },
    injected: []
  },
  { title: 'several containers', spec: { containers: [app, worker] }, injected: ['app', 'worker'] },
  {
    title: 'containers that are named',
    annotations: { 'memwatch.dev/containers': 'worker , third' },
    spec: { containers: [app, worker, { ...app, name: 'third' }] },
    injected: ['worker', 'third']
  },
  {
    title: 'a container that is misspelt',
    annotations: { 'memwatch.dev/containers': 'app,wroker' },
    spec: { containers: [app, worker] },
    injected: ['app'],
    refused: 'wroker: no such container'
  },

  {
    title: 'NODE_OPTIONS of its own come first',
    spec: {
      containers: [
        {
          ...app,
          env: [
            { name: 'PORT', value: '80' },
            { name: 'NODE_OPTIONS', value: '--max-old-space-size=100' },
            { name: 'LAST', value: '$(PORT)' }
          ]
        }
      ]
    },
    injected: ['app'],
    also: nodeOptions(`--max-old-space-size=100 ${PRELOAD}`)
  },
  {
    title: 'NODE_OPTIONS that are empty',
    spec: { containers: [{ ...app, env: [{ name: 'NODE_OPTIONS', value: '' }] }] },
    injected: ['app'],
    also: nodeOptions(PRELOAD)
  },
  {
    title: 'NODE_OPTIONS from elsewhere',
    spec: { containers: [{ ...app, env: [fromConfigMap] }] },
    injected: [],
    refused: 'app: NODE_OPTIONS comes from valueFrom'
  },
  {
    title: 'NODE_OPTIONS from elsewhere in one of two',
    spec: { containers: [{ ...app, env: [fromConfigMap] }, worker] },
    injected: ['worker'],
    refused: 'app: NODE_OPTIONS comes from valueFrom'
  },
  {
    title: 'envFrom, which may hold NODE_OPTIONS',
    spec: { containers: [{ ...app, envFrom: [{ configMapRef: { name: 'settings' } }] }] },
    injected: [],
    refused: 'app: NODE_OPTIONS may come from envFrom, say it in env'
  },
  {
    title: 'envFrom with a prefix that may make them',
    spec: {
      containers: [{ ...app, envFrom: [{ prefix: 'NODE_', configMapRef: { name: 'settings' } }] }]
    },
    injected: [],
    refused: 'app: NODE_OPTIONS may come from envFrom, say it in env'
  },
  {
    title: 'envFrom with a prefix that cannot',
    spec: {
      containers: [{ ...app, envFrom: [{ prefix: 'APP_', configMapRef: { name: 'settings' } }] }]
    },
    injected: ['app']
  },
  {
    title: 'envFrom below NODE_OPTIONS of its own',
    spec: {
      containers: [
        {
          ...app,
          env: [{ name: 'NODE_OPTIONS', value: '--no-deprecation' }],
          envFrom: [{ configMapRef: { name: 'settings' } }]
        }
      ]
    },
    injected: ['app'],
    also: nodeOptions(`--no-deprecation ${PRELOAD}`)
  },
  {
    title: 'variables of memwatch that are there',
    spec: {
      containers: [
        {
          ...app,
          env: [
            { name: 'MEMWATCH_NAME', value: 'shop' },
            { name: 'MEMWATCH_SOCKET', value: '/elsewhere' }
          ]
        }
      ]
    },
    injected: ['app'],
    also: pod => assert.strictEqual(envOf(pod, 'app', 'MEMWATCH_NAME').value, 'shop')
  },

  {
    title: 'an fsGroup and groups of its own',
    spec: {
      securityContext: { runAsUser: 1000, fsGroup: 2000, supplementalGroups: [7] },
      containers: [app]
    },
    injected: ['app'],
    also: groups([7, 65532])
  },
  {
    title: 'our group is there',
    spec: { securityContext: { supplementalGroups: [65532, 7] }, containers: [app] },
    injected: ['app'],
    also: groups([65532, 7])
  },
  {
    title: 'volumes, mounts and init containers of its own',
    spec: {
      volumes: [{ name: 'data', emptyDir: {} }],
      initContainers: [{ name: 'migrate', image: 'app' }],
      containers: [{ ...app, volumeMounts: [{ name: 'data', mountPath: '/data' }] }]
    },
    injected: ['app'],
    also: pod => assert.strictEqual(pod.spec.initContainers[0].name, 'migrate')
  },
  {
    title: 'something else at /run/memwatch',
    spec: {
      volumes: [{ name: 'data', emptyDir: {} }],
      containers: [{ ...app, volumeMounts: [{ name: 'data', mountPath: '/run/memwatch' }] }, worker]
    },
    injected: ['worker'],
    refused: 'app: something else is mounted at /run/memwatch'
  },
  {
    title: 'a sidecar that was put there by hand',
    spec: {
      volumes: [{ name: 'memwatch', emptyDir: {} }],
      initContainers: [{ name: 'memwatch-agent', image: 'app' }],
      containers: [app]
    },
    injected: []
  },

  {
    title: 'Windows by its name',
    spec: { os: { name: 'windows' }, containers: [app] },
    injected: []
  },
  {
    title: 'Windows by its nodes',
    spec: { nodeSelector: { 'kubernetes.io/os': 'windows' }, containers: [app] },
    injected: []
  },
  {
    title: 'Linux by its nodes',
    spec: { nodeSelector: { 'kubernetes.io/os': 'linux' }, containers: [app] },
    injected: ['app']
  },
  {
    title: 'the picture of a static pod',
    annotations: { 'kubernetes.io/config.mirror': 'abc', 'kubernetes.io/config.hash': 'abc' },
    spec: { nodeName: 'node1', containers: [app] },
    injected: []
  },

  {
    title: 'the network of the node',
    mode: 'sidecar',
    spec: { hostNetwork: true, containers: [app] },
    injected: [],
    refused: "it has the network of the node, where sidecars would be in each other's way"
  },
  {
    title: 'the network of the node is no matter to the exporter of the node',
    mode: 'node',
    spec: { hostNetwork: true, containers: [app] },
    injected: ['app']
  },
  {
    title: 'our port is taken',
    mode: 'sidecar',
    spec: { containers: [app, { ...worker, ports: [{ containerPort: 16369 }] }] },
    injected: [],
    refused: 'it has port 16369 itself'
  },
  {
    title: 'a Guaranteed pod stays one',
    spec: {
      containers: [
        {
          ...app,
          resources: { requests: { cpu: '1', memory: '1Gi' }, limits: { cpu: '1', memory: '1Gi' } }
        }
      ]
    },
    injected: ['app'],
    also: pod => {
      for (const { resources } of ours(pod)) {
        assert.ok(resources.limits.cpu && resources.limits.memory)
        assert.deepStrictEqual(resources.requests, resources.limits)
      }
    }
  },
  {
    title: 'resources of the whole pod are shared, not exceeded',
    spec: {
      resources: {
        requests: { cpu: '100m', memory: '64Mi' },
        limits: { cpu: '100m', memory: '64Mi' }
      },
      containers: [app]
    },
    injected: ['app'],
    also: pod => {
      for (const { resources } of ours(pod)) assert.deepStrictEqual(resources ?? {}, {})
    }
  },
  {
    title: 'a restricted pod in a restricted namespace',
    mode: 'sidecar',
    namespace: { ...ASKS, labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
    spec: {
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          ...app,
          securityContext: {
            runAsUser: 1000,
            allowPrivilegeEscalation: false,
            capabilities: { drop: ['ALL'] }
          }
        }
      ]
    },
    injected: ['app']
  },
  {
    title: 'a namespace that allows no folder of the node',
    mode: 'node',
    namespace: { ...ASKS, labels: { 'pod-security.kubernetes.io/enforce': 'baseline' } },
    spec: { containers: [app] },
    injected: [],
    refused: 'Pod Security of its namespace forbids folders of the node'
  }
]

/**
 * @param {Pod} pod
 * @returns {any[]} the added init containers
 */
function ours (pod) {
  return (pod.spec.initContainers ?? []).filter(c => c.name.startsWith('memwatch'))
}

/**
 * @param {Case} of
 * @returns {Pod} the requested pod
 */
function podOf ({ annotations, spec }) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'pod', ...(annotations && { annotations }) },
    spec: { automountServiceAccountToken: false, ...JSON.parse(JSON.stringify(spec)) }
  }
}

/**
 * @param {Case} of
 * @param {'sidecar' | 'node'} mode
 * @param {Pod} before pod without injection
 * @param {Pod} after pod after injection; both as returned by the same API server or CEL
 * @throws {assert.AssertionError}
 */
function check ({ injected, refused, also }, mode, before, after) {
  assert.strictEqual(after.metadata.annotations?.['memwatch.dev/not-injected'], refused)
  assert.strictEqual(
    after.metadata.annotations?.['memwatch.dev/injected'] !== undefined,
    injected.length > 0
  )
  if (injected.length === 0) return assert.deepStrictEqual(after.spec, before.spec)

  assert.deepStrictEqual(
    ours(after).map(({ name }) => name),
    mode === 'sidecar' ? ['memwatch-agent', 'memwatch'] : ['memwatch-agent']
  )
  assert.strictEqual(
    after.metadata.labels?.['memwatch.dev/sidecar'],
    mode === 'sidecar' ? 'true' : undefined
  )
  assert.ok(after.spec.securityContext.supplementalGroups.includes(65532))
  assert.strictEqual(after.spec.securityContext.fsGroup, before.spec.securityContext?.fsGroup)
  assert.deepStrictEqual(
    after.spec.volumes.slice(0, before.spec.volumes?.length ?? 0),
    before.spec.volumes ?? []
  )
  for (const [i, container] of after.spec.containers.entries()) {
    const was = before.spec.containers[i]
    if (!injected.includes(container.name)) {
      assert.deepStrictEqual(container, was)
      continue
    }
    assert.strictEqual(envOf(after, container.name, 'MEMWATCH_CONTAINER').value, container.name)
    assert.strictEqual(
      envOf(after, container.name, 'MEMWATCH_SOCKET').value,
      mode === 'sidecar' ? '/run/memwatch/exporter.sock' : '/run/memwatch-node/exporter.sock'
    )
    assert.ok(envOf(after, container.name, 'NODE_OPTIONS').value.endsWith(PRELOAD))
    const names = container.env.map(({ name }) => name)
    assert.deepStrictEqual(names, [...new Set(names)], 'no variable twice')
    // Its own variables keep their positions, and all variables but memwatch's keep their values.
    assert.deepStrictEqual(
      names.slice(0, was.env?.length ?? 0),
      (was.env ?? []).map(({ name }) => name)
    )
    for (const own of was.env ?? []) {
      if (!/^(NODE_OPTIONS|MEMWATCH_SOCKET)$/.test(own.name)) {
        assert.deepStrictEqual(envOf(after, container.name, own.name), own)
      }
    }
    const mounts = container.volumeMounts.filter(m => m.name.startsWith('memwatch'))
    assert.deepStrictEqual(
      mounts.map(({ mountPath, readOnly }) => [mountPath, readOnly]),
      [['/run/memwatch', true], ...(mode === 'node' ? [['/run/memwatch-node', true]] : [])]
    )
  }
  also?.(after)
}

module.exports = { cases, podOf, check, ASKS }
