'use strict'

const { envLines } = require('../text/dockerfile')
const { toYaml } = require('../text/yaml')

/** @typedef {import('../diagnoses/define-diagnosis').Change} Change */

/**
 * Dockerfile line that installs a library, by the name of the library in LD_PRELOAD.
 * @type {Record<string, string>}
 */
const INSTALL = Object.freeze({
  'libjemalloc.so.2':
    'RUN apt-get update && apt-get install -y --no-install-recommends libjemalloc2 && ' +
    'rm -rf /var/lib/apt/lists/*'
})

/**
 * @param {Record<string, string>} env
 * @returns {string | undefined} Dockerfile line that installs the preloaded library of a change
 */
const installLine = ({ LD_PRELOAD = '' }) => INSTALL[LD_PRELOAD.split(':')[0]]

/**
 * @param {Record<string, string>} env
 * @returns {string[]} lines of a Dockerfile
 */
const dockerfileLines = env => [...[installLine(env) ?? []].flat(), ...envLines(env)]

/**
 * Container fields of a pod specification.
 * @param {Pick<Change, 'env' | 'memoryLimitBytes' | 'memoryRequestBytes' | 'cpuLimitCores'>} change
 */
const containerFields = ({ env, memoryLimitBytes, memoryRequestBytes, cpuLimitCores }) => ({
  // Kubernetes expands $(NAME) in values, so each $ is doubled.
  ...(env && {
    env: Object.entries(env).map(([name, value]) => ({
      name,
      value: value.replaceAll('$', '$$$$')
    }))
  }),
  ...(cpuLimitCores !== undefined && { resources: { limits: { cpu: String(cpuLimitCores) } } }),
  ...(memoryLimitBytes !== undefined && {
    resources: {
      ...(memoryRequestBytes !== undefined && {
        requests: { memory: quantity(memoryRequestBytes) }
      }),
      limits: { memory: quantity(memoryLimitBytes) }
    }
  })
})

/**
 * @param {number} bytes
 * @returns {string} amount of memory in the notation of Kubernetes
 */
const quantity = bytes => `${Math.round(bytes / 2 ** 20)}Mi`

/**
 * Adds the changed part of a pod specification, as text.
 * @param {Change} change
 * @returns {Change} the change with a `kubernetes` form, if it has any container fields
 */
const withKubernetes = change => changesContainer(change)
  ? { ...change, kubernetes: toYaml(containerFields(change)).trimEnd() }
  : change

/** @param {Change} change */
const changesContainer = ({ env, memoryLimitBytes, cpuLimitCores }) =>
  env !== undefined || memoryLimitBytes !== undefined || cpuLimitCores !== undefined

module.exports = { withKubernetes, changesContainer, containerFields, dockerfileLines, installLine }
