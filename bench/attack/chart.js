'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { parseAllDocuments } = require('yaml')

const ROOT = path.join(__dirname, '../..')
/** Timeout for a manifest without a probe, equal to that of the chart's probes. */
const DEFAULT_PROBE_TIMEOUT_SECONDS = 5

/** The manifests that are generated from the chart. */
const MANIFESTS = {
  sidecar: { file: 'deploy/sidecar.yaml', kind: 'Deployment' },
  node: { file: 'deploy/kustomize/node/node.yaml', kind: 'DaemonSet' }
}

/** @typedef {keyof typeof MANIFESTS} Mode */

/**
 * Command and environment by which chart and image start an exporter.
 * @param {Mode} mode
 * @returns {{ env: Record<string, string>, nodeArgs: string[], memoryBytes: number, cores: number,
 *   probeTimeoutMs: number }} env: paths are those of the container
 */
function readChart (mode) {
  const { file, kind } = MANIFESTS[mode]
  const manifests = parseAllDocuments(fs.readFileSync(path.join(ROOT, file), 'utf8'))
  const { spec } = manifests.map(document => document.toJS()).find(one => one?.kind === kind)
  const { containers, initContainers = [] } = spec.template.spec
  const container = [...initContainers, ...containers].find(({ name }) => name === 'memwatch')
  const { limits } = container.resources
  const given = container.env.filter((/** @type {any} */ { value }) => value !== undefined)
  const probes = [container.livenessProbe, container.readinessProbe].filter(Boolean)
  const timeouts = probes.map(({ timeoutSeconds = 1 }) => timeoutSeconds)
  const { imageEnv, nodeArgs } = readDockerfile()
  return {
    env: {
      ...imageEnv,
      ...Object.fromEntries(
        given.map((/** @type {any} */ { name, value }) => [name, String(value)])
      )
    },
    nodeArgs,
    memoryBytes: readBytes(String(limits.memory)),
    cores: readCores(String(limits.cpu)),
    probeTimeoutMs:
      1000 * Math.min(...(timeouts.length > 0 ? timeouts : [DEFAULT_PROBE_TIMEOUT_SECONDS]))
  }
}

/** Additions of the image: variables of the last stage, and flags of Node.js before the program. */
function readDockerfile () {
  const text = fs.readFileSync(path.join(ROOT, 'Dockerfile'), 'utf8')
  const stage = text.slice(text.lastIndexOf('\nFROM '))
  const variables = /\nENV ((?:.*\\\n)*.*)/.exec(stage)?.[1] ?? ''
  const pairs = [...variables.matchAll(/([A-Z_]+)=(\S+)/g)].map(([, name, value]) => [name, value])
  const [command, ...entryArgs] = JSON.parse(/\nENTRYPOINT (\[.*\])/.exec(stage)?.[1] ?? '[]')
  const isFlag = (/** @type {string} */ argument) => argument.startsWith('--')
  return {
    imageEnv: Object.fromEntries(pairs.filter(([name]) => name !== 'PATH')),
    nodeArgs: (command.endsWith('.sh') ? readStartScript(command) : entryArgs).filter(isFlag)
  }
}

/**
 * @param {string} command of the image
 * @returns {string[]} arguments that it passes to Node.js
 */
function readStartScript (command) {
  const text = fs.readFileSync(path.join(ROOT, 'deploy/image', path.basename(command)), 'utf8')
  return /\bnode (--.*)$/m.exec(text)?.[1].split(' ') ?? []
}

/** @param {string} text as 128Mi */
function readBytes (text) {
  const [, number, unit] = /^(\d+)(Ki|Mi|Gi)$/.exec(text) ?? []
  if (!number) throw new Error(`a memory limit of ${text}: expected one such as 128Mi`)
  return Number(number) * 1024 ** (['Ki', 'Mi', 'Gi'].indexOf(unit) + 1)
}

/** @param {string} text as 100m or 1 */
const readCores = text => (text.endsWith('m') ? parseInt(text) / 1000 : Number(text))

module.exports = { readChart }
