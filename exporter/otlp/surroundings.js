'use strict'

const fs = require('node:fs')
const os = require('node:os')
const { envDetector } = require('@memwatch/otlp')

const NAMESPACE_FILE = '/var/run/secrets/kubernetes.io/serviceaccount/namespace'
/** Usual names of variables from the downward API. */
const DOWNWARD = Object.freeze({
  POD_NAME: 'k8s.pod.name',
  POD_NAMESPACE: 'k8s.namespace.name',
  POD_UID: 'k8s.pod.uid',
  NODE_NAME: 'k8s.node.name'
})
/** Attributes in OTEL_RESOURCE_ATTRIBUTES that apply to the exporter's own container only. */
const OWN =
  /^(service\.(name|instance\.id|version)$|process\.|container\.|k8s\.container\.|telemetry\.)/
/** Attributes of the pod or machine, which apply to all processes there. */
const SHARED = /^(k8s|host)\./

/** @typedef {Record<string, any>} Attributes */

/**
 * @param {string} file
 * @param {(file: string) => string} read
 */
function tryRead (file, read) {
  try {
    return read(file)
  } catch {
    return ''
  }
}

/**
 * @param {string} cgroup text of /proc/PID/cgroup
 * @returns {string | undefined}
 */
const containerId = cgroup => /([0-9a-f]{64})(?:\.scope)?$/m.exec(cgroup)?.[1]

/**
 * @param {string} text of /proc/PID/cgroup or mountinfo
 * @returns {string | undefined}
 */
const podUid = text =>
  /(?:\/pods?\/|[-/]pod)([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})/
    .exec(text)?.[1]
    .replaceAll('_', '-')

/**
 * Resource attributes: from OTEL_RESOURCE_ATTRIBUTES, then from the downward API, then from the
 * files and variables that Kubernetes provides in each container.
 * @param {object} [dependencies]
 * @param {NodeJS.ProcessEnv} [dependencies.env]
 * @param {string} [dependencies.hostname]
 * @param {(file: string) => string} [dependencies.read]
 * @returns {{ own: Attributes, shared: Attributes, all: Attributes, hostname: string }} own:
 *   attributes of this process; shared: of the pod and machine; all: of all targets, such as
 *   deployment.environment.name
 */
function surroundings ({
  env = process.env,
  hostname = os.hostname(),
  read = file => fs.readFileSync(file, 'latin1')
} = {}) {
  const given = Object.entries(envDetector.detect({}).attributes ?? {})
  const cgroup = tryRead('/proc/self/cgroup', read)
  const inKubernetes = Boolean(env.KUBERNETES_SERVICE_HOST)
  const uid =
    podUid(cgroup) ?? (inKubernetes ? podUid(tryRead('/proc/self/mountinfo', read)) : undefined)
  const namespace = inKubernetes && tryRead(NAMESPACE_FILE, read).trim()
  const id = containerId(cgroup)
  return {
    hostname,
    own: {
      ...(id && { 'container.id': id }),
      ...Object.fromEntries(given.filter(([name]) => OWN.test(name)))
    },
    shared: {
      // The host name of a pod is its name, unless it is set otherwise.
      ...(inKubernetes && { 'k8s.pod.name': hostname }),
      ...(namespace && { 'k8s.namespace.name': namespace }),
      ...(uid && { 'k8s.pod.uid': uid }),
      ...Object.fromEntries(
        Object.entries(DOWNWARD).flatMap(([variable, name]) =>
          env[variable] ? [[name, env[variable]]] : []
        )
      ),
      ...Object.fromEntries(given.filter(([name]) => !OWN.test(name) && SHARED.test(name)))
    },
    all: Object.fromEntries(given.filter(([name]) => !OWN.test(name) && !SHARED.test(name)))
  }
}

module.exports = { surroundings, containerId, podUid, tryRead }
