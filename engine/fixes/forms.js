'use strict'

const { envLines } = require('../text/dockerfile')
const { toYaml } = require('../text/yaml')

/** @typedef {import('../diagnoses/define-diagnosis').Change} Change */

/**
 * Package managers' line for a library, by the name that LD_PRELOAD has of it.
 * @type {Record<string, string>}
 */
const INSTALL = Object.freeze({
  'libjemalloc.so.2':
    'RUN apt-get update && apt-get install -y --no-install-recommends libjemalloc2 && ' +
    'rm -rf /var/lib/apt/lists/*'
})

/**
 * @param {Record<string, string>} env
 * @returns {string | undefined} the Dockerfile line that installs the library that a change
 *   preloads
 */
const installLine = ({ LD_PRELOAD = '' }) => INSTALL[LD_PRELOAD.split(':')[0]]

/**
 * @param {Record<string, string>} env
 * @returns {string[]} lines of a Dockerfile
 */
const dockerfileLines = env => [...[installLine(env) ?? []].flat(), ...envLines(env)]

/**
 * Fields of a container in the specification of a pod.
 * @param {Pick<Change, 'env' | 'memoryLimitBytes'>} change
 */
const containerFields = ({ env, memoryLimitBytes }) => ({
  // Kubernetes expands $(NAME) in values:
  // https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/
  ...(env && {
    env: Object.entries(env).map(([name, value]) => ({
      name,
      value: value.replaceAll('$', '$$$$')
    }))
  }),
  ...(memoryLimitBytes !== undefined && {
    resources: { limits: { memory: `${Math.round(memoryLimitBytes / 2 ** 20)}Mi` } }
  })
})

/**
 * The part of a pod's specification that a change is made in, as text.
 * @param {Change} change
 * @returns {Change} with that form, where there is one
 */
const withKubernetes = change =>
  change.env || change.memoryLimitBytes !== undefined
    ? { ...change, kubernetes: toYaml(containerFields(change)).trimEnd() }
    : change

module.exports = { withKubernetes, containerFields, dockerfileLines, installLine }
