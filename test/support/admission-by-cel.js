'use strict'

/**
 * A program that applies a MutatingAdmissionPolicy to pods, by a CEL in JavaScript. A real API
 * server does the same in test/k8s. It runs in a process of its own, as jest cannot load this CEL,
 * an ECMAScript module. Standard input: `{ policy, requests: { pod, namespace }[] }`; output: for
 * each `{ pod }`, or `{ error }`, which a failurePolicy of Ignore would hide.
 */

/** Kubernetes' own functions, as namespaces. */
class Lists {}
class JsonPatch {}

/** The part of Kubernetes' CEL that the policy uses. @returns {Promise<any>} */
async function makeEnvironment () {
  const { Environment } = await import('@marcbachmann/cel-js')
  return new Environment({
    unlistedVariablesAreDyn: true,
    enableOptionalTypes: true,
    homogeneousAggregateLiterals: false
  })
    .registerType('Lists', { ctor: Lists, fields: {} })
    .registerType('JsonPatch', { ctor: JsonPatch, fields: {} })
    .registerFunction(
      'Lists.range(int): list<int>',
      (/** @type {Lists} */ _, /** @type {bigint} */ length) =>
        Array.from({ length: Number(length) }, (_, i) => BigInt(i))
    )
    .registerFunction(
      'JsonPatch.escapeKey(string): string',
      (/** @type {JsonPatch} */ _, /** @type {string} */ key) =>
        key.replaceAll('~', '~0').replaceAll('/', '~1')
    )
    .registerFunction('list.flatten(): list', (/** @type {any[]} */ list) => list.flat())
    .registerVariable('lists', 'Lists')
    .registerVariable('jsonpatch', 'JsonPatch')
}

/** This policy reads patches as maps. @param {string} expression */
const withoutTypes = expression =>
  expression.replaceAll('JSONPatch{', '{').replace(/\b(op|path|value): /g, "'$1': ")

/**
 * CEL's integers.
 * @param {any} value
 * @returns {any}
 */
function plain (value) {
  if (typeof value === 'bigint') return Number(value)
  if (Array.isArray(value)) return value.map(plain)
  return value !== null && typeof value === 'object'
    ? Object.fromEntries(Object.entries(value).map(([name, of]) => [name, plain(of)]))
    : value
}

/**
 * The operations add and replace of RFC 6902.
 * @param {any} document changed
 * @param {{ op: string, path: string, value: any }[]} operations
 * @throws {Error} if a path does not exist, as the API server does
 */
function patch (document, operations) {
  for (const { op, path, value } of operations) {
    const keys = path
      .slice(1)
      .split('/')
      .map(key => key.replaceAll('~1', '/').replaceAll('~0', '~'))
    const last = /** @type {string} */ (keys.pop())
    const parent = keys.reduce((at, key) => at?.[key], document)
    if (op !== 'add' && op !== 'replace') throw new Error(`${op} is not known`)
    if (parent === undefined || (op === 'replace' && parent[last] === undefined)) {
      throw new Error(`${op} ${path}: there is none`)
    }
    if (!Array.isArray(parent) || op === 'replace') parent[last] = structuredClone(value)
    else if (last === '-') parent.push(structuredClone(value))
    else throw new Error(`add ${path}: only at the end`)
  }
}

/**
 * @param {any} environment
 * @param {any} policy
 * @param {any} pod
 * @param {any} namespace
 * @returns {any} a copy of the pod
 */
function admit (
  environment,
  { spec: { matchConditions, variables: definitions, mutations } },
  pod,
  namespace
) {
  const object = structuredClone(pod)
  const fixed = { lists: new Lists(), jsonpatch: new JsonPatch() }
  // As in Kubernetes, conditions do not see the namespace.
  if (
    !matchConditions.every(({ expression }) =>
      environment.evaluate(expression, { ...fixed, object })
    )
  ) { return object }
  /** @type {Record<string, unknown>} */
  const variables = {}
  const scope = { ...fixed, object, namespaceObject: namespace, variables }
  for (const { name, expression } of definitions) {
    variables[name] = environment.evaluate(expression, scope)
  }
  for (const { jsonPatch } of mutations) {
    patch(object, plain(environment.evaluate(withoutTypes(jsonPatch.expression), scope)))
  }
  return object
}

async function main () {
  const { policy, requests } = JSON.parse(require('node:fs').readFileSync(0, 'utf8'))
  const environment = await makeEnvironment()
  process.stdout.write(JSON.stringify(requests.map(({ pod, namespace }) => {
    try {
      return { pod: admit(environment, policy, pod, namespace) }
    } catch (error) {
      return { error: String(error) }
    }
  })))
}

main()
