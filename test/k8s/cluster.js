'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { execFile } = require('node:child_process')
const { eventually, scrape } = require('../support/exporter')
const { APP } = require('./images')

const CHART = path.join(__dirname, '../../deploy/helm/memwatch')
/** Label of namespaces: each release injects only into those with its own value. */
const RELEASE_LABEL = 'memwatch.test/release'
/** Time limit: on two busy cores, creating and ending pods and unpacking images takes long. */
const PATIENT_MS = 120_000
const LONGEST_MS = 180_000

/** @type {{ folder: string, results: string, tools: import('./tools').Tools }} */
const place = JSON.parse(process.env.K8S_PLACE ?? '{}')

/** @typedef {{ code: number, stdout: string, stderr: string }} Said */

/**
 * @param {string} file
 * @param {string[]} args
 * @param {string} [input]
 * @returns {Promise<Said>}
 */
const call = (file, args, input) => new Promise(resolve => {
  const child = execFile(
    file,
    args,
    { timeout: LONGEST_MS, maxBuffer: 64 * 2 ** 20 },
    (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) || 1 : 0, stdout, stderr })
  )
  child.stdin?.on('error', () => {}) // The program may end before it has read all its input.
  child.stdin?.end(input)
})

/**
 * @param {string} file
 * @param {string[]} args
 * @param {string} [input]
 * @returns {Promise<string>}
 * @throws {Error} error with the output of the program
 */
async function must (file, args, input) {
  const { code, stdout, stderr } = await call(file, args, input)
  if (code !== 0) {
    throw new Error(
      `${path.basename(file)} ${args.join(' ')} ended with ${code}:\n${stdout}\n${stderr}`.slice(
        0,
        6000
      )
    )
  }
  return stdout
}

const KUBECTL = () => path.join(place.tools.bin, 'kubectl')
/** @param {string[]} args */
const kubectl = (...args) => must(KUBECTL(), args)
/** @param {string[]} args */
const tryKubectl = (...args) => call(KUBECTL(), args)
/**
 * @param {string} input manifests
 * @param {string[]} args
 */
const kubectlWith = (input, ...args) => must(KUBECTL(), args, input)
/** @param {string[]} args */
const helm = (...args) => must(place.tools.helm, args)
/**
 * @param {string[]} args
 * @returns {Promise<any>}
 */
const get = async (...args) => JSON.parse(await kubectl('get', '--output', 'json', ...args))

/**
 * Records a figure, which is printed at the end of the run.
 * @param {string} what
 * @param {string} value
 */
const note = (what, value) =>
  fs.appendFileSync(place.results, JSON.stringify({ what, value }) + '\n')

/** @type {string[]} */
const namespaces = []

/**
 * Creates a namespace for one test, which is deleted after it.
 * @param {string} name
 * @param {{ release?: string, labels?: Record<string, string>, annotations?: Record<string, string>
 *   }} [options] release: the release that injects into it
 */
async function namespace (name, { release, labels = {}, annotations = {} } = {}) {
  await kubectlWith(
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: {
        name,
        annotations,
        labels: { ...labels, ...(release && { [RELEASE_LABEL]: release }) }
      }
    }),
    'apply',
    '--filename',
    '-'
  )
  namespaces.push(name)
  await eventually(
    () => tryKubectl('--namespace', name, 'get', 'serviceaccount', 'default'),
    ({ code }) => code === 0,
    PATIENT_MS
  )
  return name
}

/**
 * Call this in afterEach. It waits until the memory of the pods is free for the next test, but not
 * for the end of the deletion.
 */
async function removeNamespaces () {
  for (const name of namespaces.splice(0)) {
    await tryKubectl(
      '--namespace',
      name,
      'delete',
      'deployments,jobs,pods',
      '--all',
      '--now',
      '--wait=false'
    )
    await eventually(
      () => get('pods', '--namespace', name),
      ({ items }) => items.length === 0,
      PATIENT_MS
    )
    await tryKubectl('delete', 'namespace', name, '--wait=false')
  }
}

/**
 * Installs or upgrades the chart, and resolves once its policy is in force: the API server needs
 * some seconds.
 * @param {string} release
 * @param {Record<string, any>} [values] by --set-json
 */
async function chart (release, values = {}) {
  // The value shows whether the API server already uses the changed policy.
  const applied = { name: 'CHART_APPLIED', value: Date.now().toString(36) }
  const extraEnv = values['exporter.extraEnv'] && [...values['exporter.extraEnv'], applied]
  const given = {
    'injection.namespaceSelector': { matchLabels: { [RELEASE_LABEL]: release } },
    ...values,
    ...(extraEnv && { 'exporter.extraEnv': extraEnv })
  }
  await helm(
    'upgrade',
    '--install',
    release,
    CHART,
    '--namespace',
    'memwatch',
    '--create-namespace',
    ...Object.entries(given).flatMap(([name, value]) => [
      '--set-json',
      `${name}=${JSON.stringify(value)}`
    ])
  )
  if (given['injection.enabled'] === false) return
  // Each pod has a name of its own, as the previous one may still be terminating.
  const probe = await namespace(`probe-${release}-${Date.now().toString(36)}`, { release })
  const wanted = given['image.tag']
  const pod = JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'probe', annotations: { 'memwatch.dev/inject': 'true' } },
    spec: { containers: [{ name: 'app', image: APP }] }
  })
  await eventually(
    async () =>
      JSON.parse(
        await kubectlWith(
          pod,
          '--namespace',
          probe,
          'apply',
          '--dry-run=server',
          '--output',
          'json',
          '--filename',
          '-'
        )
      ),
    ({ metadata, spec }) =>
      Boolean(metadata.annotations['memwatch.dev/injected']) &&
      (!wanted || spec.initContainers[0].image.endsWith(`:${wanted}`)) &&
      (!extraEnv || spec.initContainers.some(({ env = [] }) =>
        env.some(({ name, value }) => name === applied.name && value === applied.value))),
    PATIENT_MS
  )
}

/** Source of an app that only serves requests. */
const SERVING =
  "require('node:http').createServer((request, response) => response.end('hello')).listen(8080)"
/** Pod Security's level "restricted". */
const RESTRICTED = {
  runAsNonRoot: true,
  runAsUser: 1000,
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  seccompProfile: { type: 'RuntimeDefault' }
}

/**
 * A Deployment that asks to be watched.
 * @param {string} name
 * @param {{ code?: string, command?: string[], container?: object, pod?: object, annotations?:
 *   Record<string, string>, replicas?: number }} [options] code: code of the app; default: it
 *   serves requests
 */
const deployment = (
  name,
  {
    code = SERVING,
    command = ['node', '-e', code],
    container = {},
    pod = {},
    annotations = { 'memwatch.dev/inject': 'true' },
    replicas = 1
  } = {}
) => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name },
  spec: {
    replicas,
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name }, annotations },
      spec: podSpec(name, { command, container, pod })
    }
  }
})

/**
 * @param {string} name
 * @param {{ command?: string[], container?: object, pod?: object }} options
 */
const podSpec = (name, { command, container = {}, pod = {} }) => ({
  terminationGracePeriodSeconds: 5,
  containers: [
    {
      name,
      image: APP,
      ...(command && { command }),
      env: [{ name: 'MEMWATCH_NAME', value: name }],
      resources: { limits: { memory: '256Mi' } },
      ...container
    }
  ],
  ...pod
})

/**
 * @param {string} namespace
 * @param {object[]} objects
 */
const apply = (namespace, ...objects) =>
  kubectlWith(
    objects.map(object => JSON.stringify(object)).join('\n---\n'),
    '--namespace',
    namespace,
    'apply',
    '--filename',
    '-'
  )

/**
 * Pods that are not terminating.
 * @param {string} namespace
 * @param {string} app
 * @returns {Promise<any[]>}
 */
const podsOf = async (namespace, app) => (await get('pods', '--namespace', namespace, '--selector', `app=${app}`)).items.filter((/** @type {any} */ { metadata }) => !metadata.deletionTimestamp)

/**
 * @param {any} pod
 * @param {string} container
 * @returns {any} status of the container, or undefined {}
 */
const statusOf = (pod, container) =>
  [...(pod?.status.containerStatuses ?? []), ...(pod?.status.initContainerStatuses ?? [])].find(
    ({ name }) => name === container
  ) ?? {}

/**
 * @param {any} pod
 * @returns {boolean} true: Services send requests to it
 */
const isReady = pod => (pod.status.conditions ?? []).some((/** @type {any} */ { type, status }) => type === 'Ready' && status === 'True')

/**
 * The only pod of an app, once its container runs.
 * @param {string} namespace
 * @param {string} app
 */
async function runningPod (namespace, app) {
  const pods = await eventually(
    () => podsOf(namespace, app),
    pods => pods.length === 1 && Boolean(statusOf(pods[0], app).state?.running),
    PATIENT_MS
  )
  return pods[0]
}

/**
 * @param {any} pod
 * @returns {Promise<string>} text of /metrics; '' if the exporter does not answer
 */
const metricsOf = pod =>
  scrape(`http://${pod.status.podIP}:16369`, { signal: () => AbortSignal.timeout(5000) }).catch(
    () => ''
  )

/**
 * @param {any} pod
 * @param {string} metric
 * @param {RegExp} [labels]
 * @returns {Promise<number | undefined>}
 */
async function metricOf (pod, metric, labels = /./) {
  const line = (await metricsOf(pod))
    .split('\n')
    .find(line => line.startsWith(metric) && labels.test(line))
  return line === undefined ? undefined : Number(line.split(' ').pop())
}

/**
 * @param {any} pod
 * @param {string} app
 */
const watched = (pod, app) =>
  eventually(
    () => metricOf(pod, `memwatch_target_up{target="${app}"`),
    value => value === 1,
    PATIENT_MS
  )

/**
 * Runs a command in a container of a pod.
 * @param {any} pod
 * @param {string} container
 * @param {string[]} command
 */
const exec = (pod, container, ...command) =>
  kubectl(
    '--namespace',
    pod.metadata.namespace,
    'exec',
    pod.metadata.name,
    '--container',
    container,
    '--',
    ...command
  )
/**
 * @param {any} pod
 * @param {string} container
 * @param {string[]} command
 */
const tryExec = (pod, container, ...command) =>
  tryKubectl(
    '--namespace',
    pod.metadata.namespace,
    'exec',
    pod.metadata.name,
    '--container',
    container,
    '--',
    ...command
  )

/**
 * The API of a pod's exporter, requested from outside the pod with its token.
 * @param {any} pod
 * @param {string} path
 * @returns {Promise<any>}
 */
async function api (pod, path) {
  const token = (await exec(pod, 'memwatch', 'cat', '/run/memwatch/token')).trim()
  const response = await fetch(`http://${pod.status.podIP}:16369/api/v1/${path}`, {
    headers: { authorization: `Bearer ${token}` }
  })
  return response.json()
}

/** Current state of a pod. @param {any} pod */
const again = pod => get('pod', pod.metadata.name, '--namespace', pod.metadata.namespace)

/**
 * Processes of a container, as this process sees them.
 * @param {any} pod
 * @param {string} container
 * @returns {number[]} pids
 */
function processesOf (pod, container) {
  const id = statusOf(pod, container).containerID.replace('containerd://', '')
  return fs
    .readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .filter(pid => readOf(pid, 'cgroup').includes(id))
}

/**
 * @param {number} pid
 * @param {string} file
 * @returns {string} content; '' for a process that has just ended
 */
function readOf (pid, file) {
  try {
    return fs.readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return ''
  }
}

/**
 * The first process of a container.
 * @param {any} pod
 * @param {string} container
 */
function processOf (pod, container) {
  const pids = processesOf(pod, container).filter(pid =>
    /NSpid:.*\t1$/m.test(readOf(pid, 'status'))
  )
  if (pids.length !== 1) throw new Error(`${pids.length} first processes of ${container}`)
  return pids[0]
}

/**
 * The exporter process in its container; undefined while none runs.
 * @param {any} pod
 * @returns {number | undefined} pid
 */
const exporterOf = pod =>
  processesOf(pod, 'memwatch').find(pid => readOf(pid, 'cmdline').startsWith('node\0'))

/**
 * @param {any} pod
 * @returns {number} RSS of its exporter in MiB
 */
const exporterRssMib = pod =>
  Math.round(Number(/VmRSS:\s+(\d+)/.exec(readOf(exporterOf(pod) ?? 0, 'status'))?.[1]) / 1024)

/**
 * Last change of a pod's Ready condition. If this time is the same before and after an event, the
 * pod was in its Services all the time.
 * @param {any} pod
 * @returns {[ready: string, since: string]}
 */
function readinessOf (pod) {
  const { status, lastTransitionTime } = pod.status.conditions.find((/** @type {any} */ { type }) => type === 'Ready')
  return [status, lastTransitionTime]
}

module.exports = {
  again,
  api,
  apply,
  chart,
  CHART,
  deployment,
  eventually,
  exec,
  exporterOf,
  exporterRssMib,
  get,
  helm,
  isReady,
  kubectl,
  kubectlWith,
  metricOf,
  metricsOf,
  namespace,
  note,
  PATIENT_MS,
  place,
  podsOf,
  podSpec,
  processOf,
  readinessOf,
  RELEASE_LABEL,
  removeNamespaces,
  RESTRICTED,
  runningPod,
  SERVING,
  statusOf,
  tryExec,
  tryKubectl,
  watched
}
