'use strict'

const {
  again,
  apply,
  chart,
  deployment,
  eventually,
  helm,
  isReady,
  kubectl,
  metricsOf,
  namespace,
  note,
  PATIENT_MS,
  podsOf,
  readinessOf,
  removeNamespaces,
  runningPod,
  statusOf,
  watched
} = require('../cluster')

afterEach(removeNamespaces)
afterAll(() => helm('uninstall', 'broken', '--namespace', 'memwatch', '--ignore-not-found'))

const serves = pod =>
  fetch(`http://${pod.status.podIP}:8080/`, { signal: AbortSignal.timeout(2000) }).then(
    response => response.status,
    error => error.message
  )

/**
 * Deploys an app that is injected by a release with these values.
 * @param {string} name
 * @param {object} values
 */
async function appBeside (name, values) {
  await chart('broken', values)
  const shop = await namespace(name, { release: 'broken' })
  const began = Date.now()
  await apply(
    shop,
    deployment('shop', {
      container: { readinessProbe: { httpGet: { port: 8080 }, periodSeconds: 1 } }
    })
  )
  const [pod] = await eventually(
    () => podsOf(shop, 'shop'),
    pods => pods.length === 1 && statusOf(pods[0], 'shop').ready === true,
    PATIENT_MS
  )
  return { pod, seconds: (Date.now() - began) / 1000 }
}

it('a sidecar that cannot start does not delay the app, and its pod is Ready', async () => {
  const { pod, seconds } = await appBeside('cannot-start', {
    'exporter.extraEnv': [{ name: 'NODE_OPTIONS', value: '--no-such-option' }]
  })
  note(
    'an app is ready beside a sidecar that cannot start, seconds after it was applied',
    seconds.toFixed(0)
  )
  const ready = readinessOf(await eventually(() => again(pod), isReady, PATIENT_MS))
  await eventually(
    () =>
      kubectl('--namespace', 'cannot-start', 'logs', pod.metadata.name, '--container', 'memwatch'),
    text => text.includes('it is started again in 4 s'),
    PATIENT_MS
  )
  const later = await again(pod)
  expect([readinessOf(later), statusOf(later, 'memwatch').restartCount]).toEqual([ready, 0])
  expect(statusOf(later, 'shop')).toMatchObject({ restartCount: 0, ready: true })
  expect(await serves(pod)).toBe(200)
})

it('a sidecar with wrong options stays and reports the reason, and its pod is Ready', async () => {
  const { pod } = await appBeside('wrong-option', {
    'exporter.otlp.endpoint': 'env',
    'exporter.extraEnv': [{ name: 'OTEL_EXPORTER_OTLP_ENDPOINT', value: 'nonsense' }]
  })
  const says = () =>
    fetch(`http://${pod.status.podIP}:16369/metrics`, { signal: AbortSignal.timeout(2000) }).then(
      async response => [response.status, await response.text()],
      () => undefined
    )
  expect(await eventually(says, Boolean, PATIENT_MS)).toEqual([
    503,
    expect.stringContaining('OTEL_EXPORTER_OTLP_ENDPOINT is no http address')
  ])
  const later = await eventually(() => again(pod), isReady, PATIENT_MS)
  expect(statusOf(later, 'memwatch').restartCount).toBe(0)
  expect(await serves(pod)).toBe(200)
})

it('a sidecar with too little memory does not delay the app', async () => {
  const { pod } = await appBeside('too-small', {
    'exporter.otlp.endpoint': '',
    'exporter.extraEnv': [],
    'sidecar.resources': {
      requests: { cpu: '100m', memory: '20Mi' },
      limits: { cpu: '100m', memory: '20Mi' }
    }
  })
  // Before an OOM kill the kernel repeatedly evicts pages of Node.js' executable. With a tenth of a
  // core this took 67 s on a busy machine.
  for (let i = 0; i < 30; i++) {
    expect(await serves(pod)).toBe(200)
    expect(await metricsOf(pod)).toBe('')
    await new Promise(resolve => setTimeout(resolve, 1000))
  }
  const later = await again(pod)
  expect(statusOf(later, 'shop')).toMatchObject({ restartCount: 0, ready: true })
  note(
    'a pod whose sidecar has too little memory is Ready; restarts of its container',
    `${isReady(later) ? 'yes' : 'no'}; ${statusOf(later, 'memwatch').restartCount}`
  )
})

it('the time that injection adds to the start of a pod is printed', async () => {
  await chart('sidecar')
  const shop = await namespace('start', { release: 'sidecar' })
  const readiness = { readinessProbe: { httpGet: { port: 8080 }, periodSeconds: 1 } }
  const secondsUntilRunning = async (name, annotations) => {
    await apply(shop, deployment(name, { annotations, container: readiness }))
    const pod = await runningPod(shop, name)
    return (
      (Date.parse(statusOf(pod, name).state.running.startedAt) -
        Date.parse(pod.metadata.creationTimestamp)) /
      1000
    )
  }
  const plain = await secondsUntilRunning('plain', {})
  const injected = await secondsUntilRunning('injected', { 'memwatch.dev/inject': 'true' })
  note(
    "from a pod's creation until its app runs, seconds: plain, injected",
    `${plain}, ${injected}`
  )
  expect(injected - plain).toBeLessThan(20)
  await watched(await runningPod(shop, 'injected'), 'injected')
})
