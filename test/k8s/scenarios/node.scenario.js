'use strict'

const { version } = require('../../../exporter/package.json')
const { NEXT_VERSION } = require('../images')
const {
  apply,
  chart,
  deployment,
  eventually,
  exporterRssMib,
  get,
  helm,
  kubectl,
  metricOf,
  metricsOf,
  namespace,
  note,
  PATIENT_MS,
  podsOf,
  removeNamespaces,
  runningPod,
  statusOf,
  watched
} = require('../cluster')

const ON_THE_NODE = { 'injection.mode': 'node', 'node.enabled': true }

afterEach(removeNamespaces)
afterAll(() => helm('uninstall', 'node', '--namespace', 'memwatch', '--ignore-not-found'))

/** The pod of the node's exporter, with this version. @param {string} tag */
const exporterPod = tag =>
  eventually(
    async () =>
      (
        await get(
          'pods',
          '--namespace',
          'memwatch',
          '--selector',
          'app.kubernetes.io/instance=node'
        )
      ).items.filter(({ metadata }) => !metadata.deletionTimestamp),
    pods =>
      pods.length === 1 &&
      pods[0].spec.containers[0].image.endsWith(`:${tag}`) &&
      statusOf(pods[0], 'memwatch').ready === true,
    PATIENT_MS
  ).then(([pod]) => pod)

const upTargets = async exporter =>
  (await metricsOf(exporter)).split('\n').filter(line => /^memwatch_target_up\{.*\} 1$/.test(line))

it('an exporter of a node identifies pods by uid; its upgrade affects no running app', async () => {
  await chart('node', { ...ON_THE_NODE, 'image.tag': version })
  const shop = await namespace('on-the-node', { release: 'node' })
  await apply(shop, deployment('shop', { replicas: 2 }))
  const exporter = await exporterPod(version)
  const pods = await eventually(
    () => podsOf(shop, 'shop'),
    pods => pods.length === 2 && pods.every(pod => statusOf(pod, 'shop').state?.running),
    PATIENT_MS
  )
  expect(pods[0].spec.initContainers.map(({ name }) => name)).toEqual(['memwatch-agent'])
  expect(
    (
      await eventually(
        () => upTargets(exporter),
        lines => lines.length === 2,
        PATIENT_MS
      )
    ).length
  ).toBe(2)
  const targets = async () =>
    JSON.parse(
      await kubectl(
        '--namespace',
        'memwatch',
        'exec',
        (await exporterPod(current)).metadata.name,
        '--container',
        'memwatch',
        '--',
        'node',
        '-e',
        "fetch('http://127.0.0.1:16369/api/v1/targets').then(r => r.text()).then(console.log)"
      )
    )
  let current = version
  const uidsOf = list =>
    list
      .filter(({ up }) => up)
      .map(({ pod }) => pod.uid)
      .sort()
  const uids = pods.map(({ metadata }) => metadata.uid).sort()
  expect(uidsOf(await targets())).toEqual(uids)
  note('RSS of the exporter of a node with two pods, MiB', String(exporterRssMib(exporter)))

  // Running apps keep their agent, while the exporter changes to the next version and back.
  for (const next of [NEXT_VERSION, version]) {
    await chart('node', { ...ON_THE_NODE, 'image.tag': next })
    current = next
    const replaced = await exporterPod(next)
    const began = Date.now()
    await eventually(
      () => upTargets(replaced),
      lines => lines.length === 2,
      PATIENT_MS
    )
    note(
      `agents ${version} and an exporter ${next} on the node: watched again after, seconds`,
      ((Date.now() - began) / 1000).toFixed(1)
    )
    expect(uidsOf(await targets())).toEqual(uids)
    expect(await metricsOf(replaced)).toContain(`memwatch_exporter_info{version="${next}"`)
    expect(await metricsOf(replaced)).toContain(`agent_version="${version}"`)
    const verdicts = await eventually(
      () => metricOf(replaced, 'memwatch_diagnosis{', /diagnosis="js-heap-leak",state="confirmed"/),
      value => value !== undefined,
      PATIENT_MS
    )
    expect(verdicts).toBe(0)
  }
  for (const pod of await podsOf(shop, 'shop')) expect(statusOf(pod, 'shop').restartCount).toBe(0)
})

it('pods keep their sidecar after an upgrade or downgrade until they are replaced', async () => {
  await chart('sidecar', { 'image.tag': version })
  const shop = await namespace('upgrade', { release: 'sidecar' })
  await apply(shop, deployment('shop'))
  let pod = await runningPod(shop, 'shop')
  await watched(pod, 'shop')
  for (const next of [NEXT_VERSION, version]) {
    const images = pod.spec.initContainers.map(({ image }) => image)
    await chart('sidecar', { 'image.tag': next })
    const same = await runningPod(shop, 'shop')
    expect([same.metadata.uid, same.spec.initContainers.map(({ image }) => image)]).toEqual([
      pod.metadata.uid,
      images
    ])
    expect(await watched(same, 'shop')).toBe(1)
    await kubectl('--namespace', shop, 'rollout', 'restart', 'deployment/shop')
    await kubectl('--namespace', shop, 'rollout', 'status', 'deployment/shop', '--timeout=120s')
    pod = await runningPod(shop, 'shop')
    await watched(pod, 'shop')
    const metrics = await metricsOf(pod)
    expect(metrics).toContain(`memwatch_exporter_info{version="${next}"`)
    expect(metrics).toContain(`agent_version="${next}"`)
  }
})
