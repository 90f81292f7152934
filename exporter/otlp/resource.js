'use strict'

const { createHash } = require('node:crypto')
const fs = require('node:fs')
const { resourceFromAttributes } = require('@memwatch/otlp')
const { Witness } = require('../process/witness')
const { identityOf } = require('@memwatch/engine/history/identity')
const { containerId, tryRead } = require('./surroundings')

/**
 * OpenTelemetry's UUID namespace for instance ids that are derived from another unique id: resource
 * conventions, service.instance.id.
 */
const INSTANCES = Buffer.from('4d63009a8d0f11eeaad74c796ed8e320', 'hex')

/** A name-based UUID, version 5 of RFC 9562. @param {string} name */
function instanceId (name) {
  const bytes = createHash('sha1').update(INSTANCES).update(name).digest().subarray(0, 16)
  bytes[6] = (bytes[6] & 0x0f) | 0x50
  bytes[8] = (bytes[8] & 0x3f) | 0x80
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

/** @param {import('@memwatch/agent/protocol/frame').Hello} hello */
const podAttributes = ({ pod = {} }) => ({
  ...(pod.name && { 'k8s.pod.name': pod.name }),
  ...(pod.namespace && { 'k8s.namespace.name': pod.namespace }),
  ...(pod.uid && { 'k8s.pod.uid': pod.uid }),
  ...(pod.container && { 'k8s.container.name': pod.container })
})

/**
 * Resources by target. A resource never changes.
 * @type {WeakMap<import('@memwatch/engine/history/target').Target, import('@opentelemetry/resources').Resource>}
 */
const known = new WeakMap()

/**
 * Resource of a target: each isolate is a separate instance of its service.
 * @param {import('@memwatch/engine/history/target').Target} target
 * @param {ReturnType<typeof import('./surroundings').surroundings>} around
 * @param {(file: string) => string} [read]
 */
function resourceOf (target, around, read = file => fs.readFileSync(file, 'latin1')) {
  const found = known.get(target)
  if (found) return found
  const { hello, name, thread } = target
  // A pid identifies a process only together with its start time, which the process probe checks.
  const container = Witness.of(hello, { read })
    ? containerId(tryRead(`/proc/${hello.pid}/cgroup`, read))
    : undefined
  const resource = resourceFromAttributes({
    ...around.all,
    // The containers of a pod share its host name.
    ...(hello.host === around.hostname && around.shared),
    ...podAttributes(hello),
    'service.name': hello.name,
    ...(hello.appVersion && { 'service.version': hello.appVersion }),
    'service.instance.id': instanceId(identityOf(hello)),
    'process.pid': hello.pid,
    'process.runtime.name': 'nodejs',
    'process.runtime.version': hello.node,
    ...(hello.host && { 'host.name': hello.host }),
    ...(container && { 'container.id': container }),
    // Name of the target in /metrics and the API.
    'memwatch.target': name,
    'memwatch.thread': thread
  })
  known.set(target, resource)
  return resource
}

/**
 * Resource of the exporter.
 * @param {ReturnType<typeof import('./surroundings').surroundings>} around
 */
const ownResource = around => resourceFromAttributes({
  'service.name': 'memwatch-exporter',
  'service.version': require('../package.json').version,
  'service.instance.id': instanceId(`${around.hostname}:${process.pid}:${performance.timeOrigin}`),
  'process.pid': process.pid,
  'process.runtime.name': 'nodejs',
  'process.runtime.version': process.versions.node,
  'host.name': around.hostname,
  ...around.all,
  ...around.shared,
  ...around.own
})

module.exports = { resourceOf, ownResource }
