'use strict'

const { comment } = require('../text/comment')
const { toYaml } = require('../text/yaml')
const {
  changesContainer, containerFields, dockerfileLines, installLine
} = require('./forms')
const { nodeOptionsText, preloadOptions, repeatable } = require('./node-flag')

/** @typedef {import('../diagnoses/define-diagnosis').Change} Change */

/** The forms that `memwatch fix` prints. */
const FORMATS = /** @type {const} */ (['kubernetes', 'dockerfile', 'node-options'])

/** Kinds of workloads, and the API of each. */
const WORKLOADS = Object.freeze({
  deployment: 'Deployment',
  statefulset: 'StatefulSet',
  daemonset: 'DaemonSet'
})

/** Characters of random Kubernetes names: k8s.io/apimachinery/pkg/util/rand. */
const CHANCE = '[bcdfghjklmnpqrstvwxz2456789]'
const DEPLOYMENT_POD = new RegExp(`^(.+)-${CHANCE}{8,10}-${CHANCE}{5}$`)
const STATEFULSET_POD = /^(.+)-\d+$/

/**
 * Error for a fix that cannot be printed in the requested format. Its message gives the reason and
 * a remedy.
 */
class NoPatchError extends Error {
  code = 'MEMWATCH_NO_PATCH'
}

/**
 * Workload that created a pod, derived from the pod's name. The names of pods of DaemonSets, Jobs
 * and bare ReplicaSets look alike, so their workload is undefined.
 * @param {string | undefined} pod name of the pod
 * @returns {{ kind: string, name: string } | undefined}
 */
function workloadOf (pod = '') {
  const deployment = DEPLOYMENT_POD.exec(pod)
  if (deployment) return { kind: WORKLOADS.deployment, name: deployment[1] }
  const statefulSet = STATEFULSET_POD.exec(pod)
  return statefulSet ? { kind: WORKLOADS.statefulset, name: statefulSet[1] } : undefined
}

/**
 * @param {string} text such as deployment/shop
 * @throws {NoPatchError}
 */
function readWorkload (text) {
  const [, kind, name] = /^(\w+)\/([a-z0-9][a-z0-9.-]*)$/.exec(text) ?? []
  const found = Object.entries(WORKLOADS).find(([plain]) => plain === kind?.toLowerCase())
  if (!found) {
    throw new NoPatchError(
      `--workload: expected ${Object.keys(WORKLOADS)
        .map(plain => `${plain}/NAME`)
        .join(', ')}, got ${JSON.stringify(text)}`
    )
  }
  return { kind: found[1], name }
}

/**
 * Complete environment for a change. If NODE_OPTIONS also preloads the agent, the preload stays,
 * unless an admission policy adds it.
 * @param {Change} change
 * @param {{ nodeOptions: readonly string[], pod?: import('@memwatch/agent/protocol/frame').Pod | null }} target
 * @returns {Record<string, string> | undefined}
 */
function environmentOf ({ env }, { nodeOptions, pod }) {
  if (!env?.NODE_OPTIONS || pod?.injected) return env
  return {
    ...env,
    NODE_OPTIONS: [env.NODE_OPTIONS, nodeOptionsText(preloadOptions(repeatable(nodeOptions)))]
      .filter(Boolean)
      .join(' ')
  }
}

/**
 * @param {Change} change
 * @param {string} form
 * @returns {never}
 * @throws {NoPatchError}
 */
function refuse ({ code, flag, note }, form) {
  if (code) throw new NoPatchError(`the fix is a change of the code: ${code}`)
  if (flag) {
    throw new NoPatchError(`the fix is a flag for the command line of node: ${flag}. ` + (note ??
      'NODE_OPTIONS cannot set it: the command line already sets the flag, or this Node.js does ' +
      'not accept it in NODE_OPTIONS'))
  }
  throw new NoPatchError(`the fix does not change ${form}`)
}

/**
 * Prints a fix as a patch in one format.
 *
 * @param {{ title: string, change: Change, risk: string }} fix
 * @param {{ target: string, nodeOptions: readonly string[], pod?:
 *   import('@memwatch/agent/protocol/frame').Pod | null }} target target in the form of
 *   /api/v1/targets
 * @param {typeof FORMATS[number]} format
 * @param {{ workload?: string, namespace?: string, container?: string }} [where] values that the
 *   target does not report, or that replace reported ones
 * @returns {string} with a newline at its end
 * @throws {NoPatchError}
 */
function patchOf (fix, target, format, where = {}) {
  const { change } = fix
  const env = environmentOf(change, target)
  if (format === 'node-options') return `${env?.NODE_OPTIONS ?? refuse(change, 'NODE_OPTIONS')}\n`
  if (format === 'dockerfile') {
    if (!env) return refuse(change, 'the image')
    return `${[...(change.note ? [comment(change.note)] : []), ...dockerfileLines(env)].join('\n')}\n`
  }
  if (!changesContainer(change)) return refuse(change, 'the pod')
  return manifest(fix, target, env, where)
}

/**
 * Manifest with the changed fields only: server-side apply merges them into the existing object.
 *
 * @param {{ title: string, change: Change, risk: string }} fix
 * @param {{ target: string, pod?: import('@memwatch/agent/protocol/frame').Pod | null }} target
 * @param {Record<string, string> | undefined} env
 * @param {{ workload?: string, namespace?: string, container?: string }} where
 */
function manifest ({ title, change, risk }, { target, pod }, env, where) {
  const workload = where.workload ? readWorkload(where.workload) : workloadOf(pod?.name)
  const container = where.container ?? pod?.container
  if (!workload) {
    throw new NoPatchError(
      pod?.name
        ? '--workload: expected deployment/NAME, statefulset/NAME or daemonset/NAME, because the ' +
          `name of pod ${pod.name} does not show its workload`
        : '--workload: expected deployment/NAME, statefulset/NAME or daemonset/NAME, because ' +
          `${target} does not report its pod`
    )
  }
  if (!container) {
    throw new NoPatchError(
      `--container: expected the name of the container, because ${target} does not report it`
    )
  }
  const namespace = where.namespace ?? pod?.namespace
  const library = env && installLine(env)
  return toYaml(
    {
      apiVersion: 'apps/v1',
      kind: workload.kind,
      metadata: { name: workload.name, ...(namespace && { namespace }) },
      spec: {
        template: {
          spec: { containers: [{ name: container, ...containerFields({ ...change, env }) }] }
        }
      }
    },
    [
      `${title}. ${risk}`,
      ...(library ? [`The image needs the library: ${library}`] : []),
      ...(change.memoryLimitBytes === undefined || change.memoryRequestBytes !== undefined
        ? []
        : ['If requests equal limits, raise the request as well, so that the pod stays ' +
          'Guaranteed.']),
      ...(change.note ? [change.note] : []),
      'kubectl apply --server-side --field-manager=memwatch -f -'
    ]
  )
}

module.exports = { patchOf, workloadOf, NoPatchError, FORMATS }
