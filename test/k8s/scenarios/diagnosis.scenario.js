'use strict'

const {
  api,
  apply,
  chart,
  deployment,
  eventually,
  exec,
  exporterRssMib,
  kubectl,
  kubectlWith,
  metricOf,
  metricsOf,
  namespace,
  note,
  removeNamespaces,
  runningPod,
  statusOf,
  watched
} = require('../cluster')
const { defined } = require('../../support/defined')

const TARGET = '@memwatch/lab'
const CONFIRM_MS = 180_000

beforeAll(() => chart('sidecar'))
afterEach(removeNamespaces)

const confirmed = pod =>
  metricOf(pod, 'memwatch_diagnosis{', /diagnosis="semi-space-starvation",state="confirmed"/)
const verdictOf = async pod =>
  (await api(pod, `diagnoses?target=${TARGET}`))[0].verdicts.find(
    ({ diagnosis }) => diagnosis === 'semi-space-starvation'
  )

/** Long enough for dozens of GCs after the start of an app. */
const SHARE_SECONDS = 20

/**
 * Total GC time until the last frame, and the uptime of that frame, both in seconds.
 * @param {any} pod
 */
async function gcTotals (pod) {
  const lines = (await metricsOf(pod)).split('\n')
  const seconds = lines
    .filter(line => line.startsWith('nodejs_gc_duration_seconds_sum'))
    .reduce((sum, line) => sum + Number(line.split(' ').pop()), 0)
  const at = defined(await metricOf(pod, 'memwatch_target_last_frame_timestamp_seconds'))
  return { seconds, at }
}

/**
 * Measures the share of time in GC from now on. The start of an app is excluded, because V8 always
 * begins with a small new space.
 * @param {any} pod
 */
async function gcShare (pod) {
  const from = await gcTotals(pod)
  const to = await eventually(
    () => gcTotals(pod),
    ({ at }) => at - from.at >= SHARE_SECONDS,
    3000 * SHARE_SECONDS
  )
  return (to.seconds - from.seconds) / (to.at - from.at)
}

it('a starving app is diagnosed in its unchanged pod, and the printed fix cures it', async () => {
  const shop = await namespace('diagnosis', { release: 'sidecar' })
  // The app as its owners publish it: no command, no environment of its own, and no part of
  // memwatch in its image.
  await apply(
    shop,
    deployment('shop', {
      container: { command: undefined, env: [], resources: { limits: { memory: '512Mi' } } }
    })
  )
  const before = await runningPod(shop, 'shop')
  await watched(before, TARGET)
  await eventually(
    () => confirmed(before),
    value => value === 1,
    CONFIRM_MS
  )
  const seconds = (Date.now() - Date.parse(statusOf(before, 'shop').state.running.startedAt)) / 1000
  note('semi-space starvation confirmed, seconds after the start of the app', seconds.toFixed(0))
  const found = await verdictOf(before)
  expect(found.state).toBe('confirmed')
  note('what was found', found.summary)
  note('RSS of the sidecar with one target, MiB', String(exporterRssMib(before)))
  expect(await exec(before, 'memwatch', 'memwatch', 'top', '--once')).toContain(
    'Confirmed: semi-space-starvation'
  )

  const shareBefore = await gcShare(before)
  expect(shareBefore).toBeGreaterThan(0.1)
  const patch = await exec(before, 'memwatch', 'memwatch', 'fix', TARGET, '--format', 'kubernetes')
  note('the fix that was applied', patch.split('\n')[0].replace(/^# /, ''))
  await kubectlWith(patch, 'apply', '--server-side', '--field-manager=memwatch', '--filename', '-')
  await kubectl('--namespace', shop, 'rollout', 'status', 'deployment/shop', '--timeout=120s')
  const after = await runningPod(shop, 'shop')
  expect(after.metadata.uid).not.toBe(before.metadata.uid)
  expect(after.spec.containers[0].env.find(({ name }) => name === 'NODE_OPTIONS').value).toMatch(
    /--max-semi-space-size=\d+ .*--require \/run\/memwatch\/agent\/index\.js/
  )
  await watched(after, TARGET)

  // Watch for one and a half times the duration of the first diagnosis.
  const uptime = () =>
    metricOf(after, 'memwatch_target_last_frame_timestamp_seconds').then(
      async last =>
        defined(last) - defined(await metricOf(after, 'memwatch_target_start_time_seconds'))
    )
  const seen = []
  await eventually(
    async () => {
      seen.push(await confirmed(after))
      return uptime()
    },
    value => value > 1.5 * seconds,
    CONFIRM_MS
  )
  expect(seen.filter(value => value === 1)).toEqual([])
  const left = await verdictOf(after)
  expect([left.state, left.summary]).toEqual([
    'ok',
    expect.stringMatching(/a semi-space may grow to (8|16|32|64) MiB/)
  ])
  note('the same, after the fix', left.summary)
  const shareAfter = await gcShare(after)
  note(
    'share of the time that GC takes, before and after the fix',
    `${(100 * shareBefore).toFixed(0)} %, ${(100 * shareAfter).toFixed(0)} %`
  )
  expect(shareAfter).toBeLessThan(shareBefore / 2)
  expect(statusOf(after, 'memwatch').restartCount).toBe(0)
})
