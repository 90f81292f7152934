'use strict'

const fs = require('node:fs')
const os = require('node:os')
const { resourceOf } = require('../../exporter/otlp/resource')
const { surroundings, containerId, podUid } = require('../../exporter/otlp/surroundings')
const { Targets } = require('../../engine/history/targets')
const { hello } = require('../support/frames')
const { openSession } = require('../support/open-session')

const ID = '0123456789abcdef'.repeat(4)
const UID = '4fa6b6d5-0e3c-4a52-b0a4-59b7c6d8e001'

const env = { ...process.env }
afterEach(() => { process.env = { ...env } })

it.each([
  ['docker, cgroup v1', `5:memory:/docker/${ID}\n`, ID, undefined],
  ['kubernetes by cgroupfs', `5:memory:/kubepods/burstable/pod${UID}/${ID}\n`, ID, UID],
  [
    'kubernetes by systemd',
    `0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod${UID.replaceAll('-', '_')}.slice/cri-containerd-${ID}.scope\n`,
    ID,
    UID
  ],
  [
    'a mount of the kubelet',
    `1 2 8:1 /var/lib/kubelet/pods/${UID}/etc-hosts /etc/hosts rw\n`,
    undefined,
    UID
  ],
  ['a cgroup namespace', '0::/\n', undefined, undefined],
  ['a session', '0::/user.slice/user-1000.slice/session-1.scope\n', undefined, undefined]
])('the container and the pod are read from %s', (_, text, id, uid) => {
  expect([containerId(text), podUid(text)]).toEqual([id, uid])
})

it('settings override the downward API, and that overrides traces of Kubernetes', () => {
  process.env.OTEL_RESOURCE_ATTRIBUTES =
    'k8s.namespace.name=said,deployment.environment.name=pr%20od'
  const files = {
    '/proc/self/cgroup': `0::/kubepods/pod${UID}/${ID}\n`,
    '/var/run/secrets/kubernetes.io/serviceaccount/namespace': 'left\n'
  }
  const read = file =>
    files[file] ??
    (() => {
      throw new Error('ENOENT')
    })()
  const around = surroundings({
    env: { KUBERNETES_SERVICE_HOST: '10.0.0.1', POD_NAMESPACE: 'downward', NODE_NAME: 'node-1' },
    hostname: 'shop-1',
    read
  })
  expect(around.shared).toEqual({
    'k8s.pod.name': 'shop-1',
    'k8s.pod.uid': UID,
    'k8s.node.name': 'node-1',
    'k8s.namespace.name': 'said'
  })
  expect([around.all, around.own]).toEqual([
    { 'deployment.environment.name': 'pr od' },
    { 'container.id': ID }
  ])
  expect(
    surroundings({
      env: {},
      hostname: 'laptop',
      read: file => {
        throw new Error(file)
      }
    }).shared
  ).toEqual({ 'k8s.namespace.name': 'said' })
})

it('the container is that of the visible process, not the exporter’s or a namesake’s', () => {
  const ticks = Number(fs.readFileSync('/proc/self/stat', 'latin1').split(') ')[1].split(' ')[19])
  const read = file =>
    file === `/proc/${process.pid}/cgroup` ? `0::/docker/${ID}\n` : fs.readFileSync(file, 'latin1')
  const around = surroundings({ env: {}, hostname: os.hostname() })
  const of = startTimeTicks =>
    resourceOf(
      openSession(
        new Targets({ now: Date.now }),
        hello({ pid: process.pid, startTimeTicks })
      ).target,
      around,
      read
    ).attributes['container.id']
  expect([of(ticks), of(ticks + 1), of(undefined)]).toEqual([ID, undefined, undefined])
})

it('the pod from the agent overrides the pod of the exporter', () => {
  const around = surroundings({
    env: { KUBERNETES_SERVICE_HOST: '10.0.0.1', POD_NAME: 'exporter-1' },
    hostname: 'node-1'
  })
  const { attributes } = resourceOf(
    openSession(
      new Targets({ now: Date.now }),
      hello({
        host: 'node-1',
        pod: { uid: UID, name: 'shop-1', namespace: 'default', container: 'app' }
      })
    ).target,
    around
  )
  expect(attributes).toMatchObject({
    'k8s.pod.uid': UID,
    'k8s.pod.name': 'shop-1',
    'k8s.namespace.name': 'default',
    'k8s.container.name': 'app'
  })
})

it('the version of the app is service.version, if the agent reports one', () => {
  const around = surroundings({ env: {} })
  const of = (/** @type {object} */ changes) => resourceOf(
    openSession(new Targets({ now: Date.now }), hello(changes)).target, around
  ).attributes['service.version']
  expect([of({ appVersion: '4.3.0' }), of({})]).toEqual(['4.3.0', undefined])
})

it('each thread and each session has an instance id of its own, which does not change', () => {
  const around = surroundings({ env: {} })
  const id = changes =>
    resourceOf(openSession(new Targets({ now: Date.now }), hello(changes)).target, around).attributes['service.instance.id']
  expect(id({})).toBe(id({ node: '24.0.0' }))
  expect(
    new Set([
      id({}),
      id({ threadId: 1 }),
      id({ pid: 1 }),
      id({ host: 'x' }),
      id({ startedAtUnixMs: 1 })
    ]).size
  ).toBe(5)
})
