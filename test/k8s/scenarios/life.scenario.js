'use strict'

const net = require('node:net')
const path = require('node:path')
const {
  again,
  api,
  apply,
  chart,
  deployment,
  eventually,
  exec,
  exporterOf,
  get,
  isReady,
  kubectl,
  metricOf,
  namespace,
  note,
  PATIENT_MS,
  podsOf,
  podSpec,
  processOf,
  readinessOf,
  removeNamespaces,
  RESTRICTED,
  runningPod,
  SERVING,
  statusOf,
  watched
} = require('../cluster')

beforeAll(() => chart('sidecar'))

const FLOOD = { seconds: 20, requestsPerSecond: 200, idle: 1000 }

/**
 * Sends too many requests from one address for a limited time.
 * @param {string} host
 */
function flood (host) {
  const began = performance.now()
  const isOver = () => performance.now() - began > 1000 * FLOOD.seconds
  /** @type {Map<string, number>} */
  const answers = new Map()
  /** @type {Set<net.Socket>} */
  const sockets = new Set()
  const open = (/** @type {() => void} */ onClose) => {
    const socket = net.connect(16369, host)
    sockets.add(socket)
    socket
      .on('error', () => {})
      .on('close', () => {
        sockets.delete(socket)
        if (!isOver()) setTimeout(onClose, 500)
      })
    return socket
  }
  const hold = () => { open(hold).resume() }
  for (let i = 0; i < FLOOD.idle; i++) hold()
  let sent = 0
  const timer = setInterval(() => {
    if (isOver()) {
      clearInterval(timer)
      for (const socket of sockets) socket.destroy()
      return
    }
    for (; sent < (performance.now() - began) / 1000 * FLOOD.requestsPerSecond; sent++) {
      open(() => {}).on('data', text => {
        const [, status = ''] = /^HTTP\/1\.1 (\d+)/.exec(String(text)) ?? []
        if (status) answers.set(status, (answers.get(status) ?? 0) + 1)
      }).write(`GET /metrics HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
    }
  }, 10)
  return { over: isOver, answers }
}
afterEach(removeNamespaces)

it('a sidecar survives the OOM kill of its app, and reports the death', async () => {
  const shop = await namespace('death', { release: 'sidecar' })
  const leak =
    "const kept = []; require('node:http').createServer((request, response) => { setInterval(() " +
      '=> kept.push(Buffer.alloc(3 * 2 ** 20, 1)), 100); response.end() }).listen(8080)'
  await apply(
    shop,
    deployment('leak', { code: leak, container: { resources: { limits: { memory: '200Mi' } } } })
  )
  const started = await runningPod(shop, 'leak')
  await watched(started, 'leak')
  await fetch(`http://${started.status.podIP}:8080/`)
  const pod = await eventually(
    () => podsOf(shop, 'leak').then(([pod]) => pod),
    pod => statusOf(pod, 'leak').lastState?.terminated?.reason === 'OOMKilled',
    PATIENT_MS
  )
  const deaths = await eventually(
    () => api(pod, 'deaths?target=leak'),
    deaths => deaths.length > 0,
    PATIENT_MS
  )
  expect(deaths[0]).toMatchObject({ target: 'leak', reason: 'oom_kill' })
  note(
    'what the sidecar says of an app that was killed for memory',
    `${deaths[0].reason}, ${deaths[0].sure}`
  )
  expect(await exec(pod, 'memwatch', 'memwatch', 'last-death', 'leak')).toContain(
    'killed by the kernel for memory'
  )
  const { lastMinutes } = await api(pod, `deaths/${deaths[0].id}`)
  expect(lastMinutes.tracks.rssBytes.at(-1)).toBeGreaterThan(120 * 2 ** 20)
  expect(statusOf(await again(pod), 'memwatch')).toMatchObject({
    restartCount: 0,
    state: { running: expect.anything() }
  })
})

it('a Job with a sidecar completes, even if it ends before the sidecar’s start', async () => {
  const shop = await namespace('job', { release: 'sidecar' })
  const template = {
    metadata: { labels: { app: 'report' }, annotations: { 'memwatch.dev/inject': 'true' } },
    spec: {
      ...podSpec('report', {
        command: ['node', '-e', 'setTimeout(() => {}, 3000)'],
        pod: { terminationGracePeriodSeconds: 30 }
      }),
      restartPolicy: 'Never'
    }
  }
  await apply(shop, {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'report' },
    spec: { template, backoffLimit: 0 }
  })
  const { status } = await eventually(
    () => get('job', 'report', '--namespace', shop),
    ({ status }) =>
      (status.conditions ?? []).some(
        ({ type, status }) => ['Complete', 'Failed'].includes(type) && status === 'True'
      ),
    PATIENT_MS
  )
  expect(status.succeeded).toBe(1)
  const {
    items: [pod]
  } = await get('pods', '--namespace', shop)
  expect(pod.status.phase).toBe('Succeeded')
  expect(statusOf(pod, 'report').state.terminated.exitCode).toBe(0)
  expect(statusOf(pod, 'memwatch').state.terminated.exitCode).toBe(0)
  note(
    'a Job of three seconds is complete after, seconds',
    String((Date.parse(status.completionTime) - Date.parse(status.startTime)) / 1000)
  )
})

it('after a kill of the sidecar the app still serves, and earlier history is there', async () => {
  const shop = await namespace('killed', { release: 'sidecar' })
  await apply(shop, deployment('shop'))
  const pod = await runningPod(shop, 'shop')
  await watched(pod, 'shop')
  const seriesOf = async () =>
    (await api(await again(pod), 'targets/shop/series?track=rssBytes&seconds=600')).times ?? []
  // The exporter has saved all but the last few seconds.
  const before = await eventually(
    seriesOf,
    times => times.length > 1 && times.at(-1) - times[0] > 20,
    PATIENT_MS
  )
  const answers = []
  const over = new AbortController()
  const asking = (async () => {
    while (!over.signal.aborted) {
      answers.push(
        await fetch(`http://${pod.status.podIP}:8080/`, { signal: AbortSignal.timeout(2000) }).then(
          response => response.status,
          error => error.message
        )
      )
      await new Promise(resolve => setTimeout(resolve, 100))
    }
  })()
  const killedAt = Date.now()
  process.kill(processOf(pod, 'memwatch'), 'SIGKILL')
  const readings = []
  await eventually(
    async () => {
      const now = await again(pod)
      readings.push({ ready: isReady(now), atMs: Date.now() })
      return now
    },
    now =>
      statusOf(now, 'memwatch').restartCount === 1 &&
      Boolean(statusOf(now, 'memwatch').state.running),
    PATIENT_MS
  )
  await eventually(() => again(pod).then(isReady), Boolean, PATIENT_MS)
  const unreadySince = readings.find(({ ready }) => !ready)?.atMs
  note(
    'the pod was not Ready while the container of its sidecar was replaced, as Kubernetes ' +
      'counts sidecars in: seconds',
    unreadySince ? ((Date.now() - unreadySince) / 1000).toFixed(1) : '0'
  )
  await watched(pod, 'shop')
  note(
    'from the kill of a sidecar until its target is watched again, seconds',
    ((Date.now() - killedAt) / 1000).toFixed(1)
  )
  const after = await eventually(seriesOf, times => times.at(-1) > before.at(-1) + 5, PATIENT_MS)
  over.abort()
  await asking
  expect(after[0]).toBeLessThanOrEqual(before[0] + 10)
  expect(answers.filter(answer => answer !== 200)).toEqual([])
  expect(answers.length).toBeGreaterThan(20)
  expect(statusOf(await again(pod), 'shop').restartCount).toBe(0)
})

it('a pod stays in its Services while its sidecar is flooded or its exporter killed', async () => {
  const shop = await namespace('flooded', { release: 'sidecar' })
  await apply(shop, deployment('shop'), {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'shop' },
    spec: { selector: { app: 'shop' }, ports: [{ port: 8080 }] }
  })
  const pod = await runningPod(shop, 'shop')
  await watched(pod, 'shop')
  /** Any change of the pod increases its generation. */
  const slice = async () =>
    (
      await get(
        'endpointslices',
        '--namespace',
        shop,
        '--selector',
        'kubernetes.io/service-name=shop'
      )
    ).items[0]
  const before = await eventually(
    slice,
    found => found?.endpoints?.[0]?.conditions.ready === true,
    PATIENT_MS
  )
  const ready = readinessOf(await again(pod))

  const attack = flood(pod.status.podIP)
  const waits = []
  while (!attack.over()) {
    const began = performance.now()
    expect(
      (
        await fetch(`http://${pod.status.podIP}:16369/-/healthy`, {
          headers: { connection: 'close' },
          signal: AbortSignal.timeout(30_000)
        })
      ).status
    ).toBe(200)
    waits.push(performance.now() - began)
    await new Promise(resolve => setTimeout(resolve, 250))
  }
  note(
    'longest wait of a probe while one address, its own, sends 200 requests a second and holds ' +
      '1,000 connections: seconds',
    (Math.max(...waits) / 1000).toFixed(1)
  )
  expect(attack.answers.get('200')).toBeGreaterThan(0)

  const backSeconds = []
  for (let i = 0; i < 3; i++) {
    const exporter = await eventually(() => exporterOf(pod), Boolean, PATIENT_MS)
    process.kill(/** @type {number} */ (exporter), 'SIGKILL')
    const killedAt = Date.now()
    await eventually(
      () => exporterOf(pod),
      found => found !== undefined && found !== exporter,
      PATIENT_MS
    )
    await watched(pod, 'shop')
    backSeconds.push(((Date.now() - killedAt) / 1000).toFixed(0))
  }
  note(
    'from the kill of an exporter in its sidecar until its target is watched again, seconds',
    backSeconds.join(', ')
  )
  const after = await slice()
  expect([after.metadata.generation, after.endpoints[0].conditions.ready]).toEqual([
    before.metadata.generation,
    true
  ])
  const later = await again(pod)
  expect(readinessOf(later)).toEqual(ready)
  expect([statusOf(later, 'memwatch').restartCount, statusOf(later, 'shop').restartCount]).toEqual([
    0, 0
  ])
})

it('apps of any user and group are watched, also in a restricted namespace', async () => {
  const restricted = await namespace('restricted', {
    release: 'sidecar',
    labels: { 'pod-security.kubernetes.io/enforce': 'restricted' }
  })
  const open = await namespace('open', { release: 'sidecar' })
  /** @type {[name: string, at: string, container: object, pod: object][]} */
  const cases = [
    ['one', restricted, { securityContext: RESTRICTED }, {}],
    [
      'one-with-a-group',
      restricted,
      { securityContext: RESTRICTED },
      { securityContext: { fsGroup: 2000 } }
    ],
    [
      'one-with-groups',
      restricted,
      { securityContext: { ...RESTRICTED, readOnlyRootFilesystem: true } },
      { securityContext: { supplementalGroups: [3000], runAsNonRoot: true } }
    ],
    ['root', open, { securityContext: { runAsUser: 0 } }, {}],
    [
      'root-with-a-group',
      open,
      { securityContext: { runAsUser: 0, capabilities: { drop: ['ALL'] } } },
      { securityContext: { fsGroup: 2000 } }
    ]
  ]
  for (const [name, at, container, pod] of cases) {
    await apply(at, deployment(name, { container, pod }))
  }
  for (const [name, at] of cases) {
    const pod = await runningPod(at, name)
    await watched(pod, name)
    expect(pod.spec.securityContext.supplementalGroups).toContain(65532)
    expect(statusOf(await again(pod), name).restartCount).toBe(0)
  }
})

it('a restricted namespace accepts the published Deployment with a sidecar', async () => {
  const shop = await namespace('static', {
    labels: { 'pod-security.kubernetes.io/enforce': 'restricted' }
  })
  await kubectl(
    '--namespace',
    shop,
    'apply',
    '--filename',
    path.join(__dirname, '../../../deploy/sidecar.yaml')
  )
  const pods = () => get('pods', '--namespace', shop).then(({ items }) => items)
  const [pod] = await eventually(pods, pods => pods.length === 1 && isReady(pods[0]), PATIENT_MS)
  expect(
    await eventually(
      () => metricOf(pod, 'memwatch_target_up'),
      value => value === 1,
      PATIENT_MS
    )
  ).toBe(1)
  const [target] = await api(pod, 'targets')
  expect(target.pod).toMatchObject({
    name: pod.metadata.name,
    namespace: shop,
    uid: pod.metadata.uid,
    container: 'app'
  })
})

it('a Guaranteed pod stays Guaranteed', async () => {
  const shop = await namespace('guaranteed', { release: 'sidecar' })
  const resources = {
    requests: { cpu: '100m', memory: '200Mi' },
    limits: { cpu: '100m', memory: '200Mi' }
  }
  await apply(shop, deployment('shop', { container: { resources } }))
  const pod = await runningPod(shop, 'shop')
  expect([pod.spec.initContainers.length, pod.status.qosClass]).toEqual([2, 'Guaranteed'])
})

it('the sidecar gets a scan and a profile from an app of another user', async () => {
  const shop = await namespace('capture', { release: 'sidecar' })
  await apply(
    shop,
    deployment('shop', {
      code: `${SERVING}; const kept = []; setInterval(function remember () { kept.push(new ` +
        'Array(1000).fill(kept.length)) }, 20)'
    })
  )
  const pod = await runningPod(shop, 'shop')
  await watched(pod, 'shop')
  expect(
    await exec(pod, 'memwatch', 'memwatch', 'capture', 'shop', 'heap_profile', '--seconds', '5')
  ).toMatch(/^heap_profile [0-9a-f-]{36}, \d+ KiB/)
  expect((await api(pod, 'captures')).map(({ kind, state }) => [kind, state])).toEqual([
    ['heap_profile', 'done']
  ])
})
