'use strict'

/**
 * Writes the schemas against which manifests are validated, from the sources named in ORIGIN.md:
 * `node test/deploy/schemas/make.js KUBERNETES_JSON_SCHEMA_FOLDER CRD_FOLDER`. It keeps only the
 * kinds in use, without descriptions; an unknown property is an error.
 */

const fs = require('node:fs')
const path = require('node:path')
const { parse } = require('yaml')

/** @type {Record<string, string>} definitions by the kind in lower case */
const KINDS = {
  configmap: 'io.k8s.api.core.v1.ConfigMap',
  daemonset: 'io.k8s.api.apps.v1.DaemonSet',
  deployment: 'io.k8s.api.apps.v1.Deployment',
  namespace: 'io.k8s.api.core.v1.Namespace',
  networkpolicy: 'io.k8s.api.networking.v1.NetworkPolicy',
  pod: 'io.k8s.api.core.v1.Pod',
  service: 'io.k8s.api.core.v1.Service',
  serviceaccount: 'io.k8s.api.core.v1.ServiceAccount',
  statefulset: 'io.k8s.api.apps.v1.StatefulSet',
  mutatingadmissionpolicy: 'io.k8s.api.admissionregistration.v1.MutatingAdmissionPolicy',
  mutatingadmissionpolicybinding:
    'io.k8s.api.admissionregistration.v1.MutatingAdmissionPolicyBinding'
}
const VERSIONS = ['1.29', '1.31', '1.36']
const CRDS = ['podmonitors', 'servicemonitors', 'prometheusrules']

/**
 * @param {any} schema
 * @returns {any} a copy without descriptions, whose references stay within one file
 */
function bare (schema) {
  if (Array.isArray(schema)) return schema.map(bare)
  if (schema === null || typeof schema !== 'object') return schema
  return Object.fromEntries(
    Object.entries(schema)
      .filter(([name, value]) => name !== 'description' || typeof value !== 'string')
      .map(([name, value]) => [
        name,
        name === '$ref' ? value.replace(/^.*#\/\$defs\//, '#/definitions/') : bare(value)
      ])
  )
}

/**
 * @param {any} schema
 * @param {Record<string, any>} from
 * @param {Record<string, any>} into collects all definitions to which the schema refers
 */
function collect (schema, from, into) {
  for (const [, name] of JSON.stringify(schema).matchAll(/"#\/definitions\/([^"]+)"/g)) {
    if (into[name]) continue
    into[name] = bare(from[name])
    collect(into[name], from, into)
  }
}

/**
 * Makes a schema strict, like the API server for custom resources: a property that is not listed is
 * unknown.
 * @param {any} schema
 * @returns {any}
 */
function strict (schema) {
  if (Array.isArray(schema)) return schema.map(strict)
  if (schema === null || typeof schema !== 'object') return schema
  const {
    'x-kubernetes-int-or-string': either,
    'x-kubernetes-preserve-unknown-fields': open,
    ...rest
  } = schema
  const made = Object.fromEntries(
    Object.entries(rest)
      .filter(([name]) => !name.startsWith('x-kubernetes-') && !(either && name === 'anyOf'))
      .map(([name, value]) => [name, strict(value)])
  )
  if (either) made.type = ['string', 'integer']
  if (
    made.properties &&
    made.type === 'object' &&
    !open &&
    made.additionalProperties === undefined
  ) {
    made.additionalProperties = false
  }
  return made
}

/**
 * @param {string} file
 * @param {unknown} content
 */
function write (file, content) {
  fs.mkdirSync(path.dirname(path.join(__dirname, file)), { recursive: true })
  fs.writeFileSync(path.join(__dirname, file), JSON.stringify(content) + '\n')
}

const [kubernetes, crds] = process.argv.slice(2)
for (const version of VERSIONS) {
  const all = JSON.parse(
    fs.readFileSync(
      path.join(kubernetes, `v${version}.0-local-strict`, '_definitions.json'),
      'utf8'
    )
  ).$defs
  /** @type {Record<string, any>} */
  const definitions = {}
  for (const [kind, name] of Object.entries(KINDS)) {
    if (!all[name]) continue // The kind belongs to a later version.
    write(`v${version}.0/${kind}.json`, { $ref: `definitions.json#/definitions/${name}` })
    collect({ $ref: `#/definitions/${name}` }, all, definitions)
  }
  write(`v${version}.0/definitions.json`, { definitions })
}
for (const name of CRDS) {
  const { spec } = parse(
    fs.readFileSync(path.join(crds, `monitoring.coreos.com_${name}.yaml`), 'utf8')
  )
  for (const { name: version, schema } of spec.versions) {
    const made = strict(bare(schema.openAPIV3Schema))
    made.properties.metadata = { type: 'object' }
    write(`monitoring.coreos.com/${spec.names.kind.toLowerCase()}_${version}.json`, made)
  }
}
