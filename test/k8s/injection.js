'use strict'

/**
 * `npm run test:injection` sends the pods of test/deploy/injection-cases.js to the API server of a
 * real cluster with Pod Security, and checks the pods that it returns. It needs kubectl, Kubernetes
 * 1.36 in KUBECONFIG, and permission to install the chart there; it creates pods with
 * --dry-run=server, so none runs. It needs no nodes. It ends with 1 if a case fails.
 */

const { spawnSync } = require('node:child_process')
const { randomBytes } = require('node:crypto')
const { cases, podOf, check, ASKS } = require('../deploy/injection-cases')
const { findGoTools, GO_MISSING } = require('../../scripts/go-tools')
const { CHART } = require('../../scripts/generate-deploy')

const RELEASE = `memwatch-injection-${randomBytes(3).toString('hex')}`
const DEADLINE_MS = 60_000
const EVERY_MS = 500

/**
 * @param {string} file
 * @param {string[]} args
 * @param {string} [input]
 * @returns {string}
 * @throws {Error} error with the output of the program
 */
function run (file, args, input) {
  const { status, stdout, stderr, error } = spawnSync(file, args, {
    encoding: 'utf8',
    input,
    maxBuffer: 64 * 2 ** 20
  })
  if (status !== 0) throw new Error(`${file} ${args.join(' ')}: ${error?.message ?? stderr}`)
  return stdout
}

/**
 * @param {() => unknown} condition
 * @returns {Promise<void>} resolves once the condition holds and does not throw
 * @throws {Error} after the deadline
 */
async function eventually (condition) {
  for (const from = Date.now(); ;) {
    let failure
    try {
      if (condition()) return
    } catch (error) {
      failure = error
    }
    if (Date.now() - from > DEADLINE_MS) throw failure ?? new Error('it did not come about')
    await new Promise(resolve => setTimeout(resolve, EVERY_MS))
  }
}

/** One pod of each kind. @type {Map<string, string>} metadata → name */
const namespaces = new Map()
for (const { namespace = ASKS } of cases) {
  if (!namespaces.has(JSON.stringify(namespace))) {
    namespaces.set(JSON.stringify(namespace), `${RELEASE}-${namespaces.size}`)
  }
}

/** @returns {any[]} pods of all cases as the API server would create them */
function ask () {
  const pods = cases.map((of, i) => {
    const pod = podOf(of)
    Object.assign(pod.metadata, {
      name: `case-${i}`,
      namespace: namespaces.get(JSON.stringify(of.namespace ?? ASKS))
    })
    return pod
  })
  const lines = run(
    'kubectl',
    ['create', '--dry-run=server', '--output', 'jsonpath={@}{"\\n"}', '--filename', '-'],
    JSON.stringify({ apiVersion: 'v1', kind: 'List', items: pods })
  )
    .trim()
    .split('\n')
  const created = lines.map(line => JSON.parse(line))
  return cases.map((_, i) => created.find(({ metadata }) => metadata.name === `case-${i}`))
}

async function main () {
  const helm = findGoTools()?.helm
  if (!helm) throw new Error(GO_MISSING)
  let failed = 0
  try {
    for (const [metadata, name] of namespaces) {
      run(
        'kubectl',
        ['create', '--filename', '-'],
        JSON.stringify({
          apiVersion: 'v1',
          kind: 'Namespace',
          metadata: { name, ...JSON.parse(metadata) }
        })
      )
    }
    /** @type {any[]} */
    let before = []
    // The cluster may have to create service accounts first.
    await eventually(() => { before = ask(); return true })
    for (const mode of /** @type {const} */ (['sidecar', 'node'])) {
      run(helm, [
        'upgrade',
        '--install',
        RELEASE,
        CHART,
        '--namespace',
        RELEASE,
        '--create-namespace',
        '--set',
        `injection.mode=${mode}`
      ])
      /** @type {any[]} */
      let after = []
      const socket = () =>
        after[0].spec.containers[0].env?.find(({ name }) => name === 'MEMWATCH_SOCKET')?.value ?? ''
      await eventually(() => {
        after = ask()
        return socket().includes('-node/') === (mode === 'node') && socket() !== ''
      })
      for (const [i, of] of cases.entries()) {
        if (of.mode && of.mode !== mode) continue
        try {
          check(of, mode, before[i], after[i])
          console.log(`ok      ${mode}: ${of.title}`)
        } catch (error) {
          failed++
          console.log(`FAILED  ${mode}: ${of.title}: ${/** @type {Error} */ (error).message}`)
        }
      }
    }
  } finally {
    spawnSync(helm, ['uninstall', RELEASE, '--namespace', RELEASE], { stdio: 'ignore' })
    run('kubectl', [
      'delete',
      'namespace',
      '--ignore-not-found',
      '--wait=false',
      RELEASE,
      ...namespaces.values()
    ])
  }
  console.log(failed === 0 ? 'all cases as they must be' : `${failed} failed`)
  if (failed > 0) process.exitCode = 1
}

main()
